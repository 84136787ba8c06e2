// What the pages do beyond plain HTML. Every form and link works without this file.
"use strict";
(() => {
  // The sign-in link of the demo has the key behind "#", which a browser never sends to a server.
  const signIn = document.getElementById("sign-in");
  if (signIn && location.hash.startsWith("#key=")) {
    signIn.elements.key.value = decodeURIComponent(location.hash.slice(5));
    history.replaceState(null, "", location.pathname + location.search);
    signIn.requestSubmit();
  }

  // A form with data-once is sent once: a second click does nothing.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.sent) event.preventDefault();
    if ("once" in form.dataset) form.dataset.sent = "1";
  });
  window.addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  });
})();
