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

  // A page about budgets follows them: after a change, its part `#live` is read again.
  const live = document.querySelector("[data-live]");
  if (live && window.EventSource) {
    let since = live.dataset.since, events, waiting, pause = 2000;
    // The old balances stay, so that nothing jumps, with a notice that they no longer move.
    const ended = () => {
      events.close();
      clearTimeout(waiting);
      if (document.getElementById("ended")) return;
      const notice = document.createElement("p"), link = document.createElement("a");
      notice.id = "ended";
      notice.className = "notice";
      notice.setAttribute("role", "alert");
      link.href = `/sign-in?expired=1&next=${encodeURIComponent(location.pathname + location.search)}`;
      link.textContent = "Sign in again";
      notice.append("Your sign-in has ended. What you see no longer changes. ", link, ".");
      document.getElementById("content").prepend(notice);
    };
    // Asks for nothing but the status: 204 leads to the sign-in.
    const check = async () => {
      const reply = await fetch(live.dataset.live, { method: "HEAD", headers: { "HX-Request": "true" } });
      if (reply.headers.has("HX-Redirect")) ended();
      return !reply.headers.has("HX-Redirect");
    };
    const refresh = async () => {
      if (document.activeElement && live.contains(document.activeElement) &&
          ["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement.tagName)) return;
      if (!(await check().catch(() => true))) return;
      htmx.ajax("GET", live.dataset.live, { target: "#live", select: "#live", swap: "outerHTML" });
    };
    const follow = () => {
      events = new EventSource(`/live?since=${since}`);
      events.addEventListener("open", () => { pause = 2000; });
      events.addEventListener("budget", (event) => {
        since = event.lastEventId || since;
        clearTimeout(waiting);
        waiting = setTimeout(refresh, 200);
      });
      events.addEventListener("end", ended);
      // A browser connects again by itself, but not after a reply such as a proxy's 502.
      events.addEventListener("error", () => {
        if (events.readyState !== EventSource.CLOSED) return;
        setTimeout(async () => {
          if (await check().catch(() => true)) follow();
        }, pause);
        pause = Math.min(2 * pause, 60000);
      });
    };
    follow();
    window.addEventListener("pagehide", () => events.close());
  }

  // Another kind of question has other fields: load the form again.
  document.addEventListener("change", (event) => {
    if ("reload" in event.target.dataset) event.target.form.submit();
  });

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
