// Swagger UI for the description of the interface. It sends what reads, and what is free.
"use strict";
(() => {
  const place = document.getElementById("swagger");
  const FREE = [
    "/v1/queries/preview", "/v1/queries/rehearse", "/v1/streams/preview", "/v1/drafts", "/v1/accounting/compose",
  ];
  const maySend = (path, method) => method === "get" || (method === "post" && FREE.includes(path));
  const onlyFree = () => ({
    statePlugins: {
      spec: { wrapSelectors: { allowTryItOutFor: () => (state, path, method) => maySend(path, method) } },
    },
  });
  SwaggerUIBundle({
    url: place.dataset.description,
    domNode: place,
    deepLinking: false,
    validatorUrl: null,
    docExpansion: "none",
    defaultModelsExpandDepth: -1,
    plugins: [onlyFree],
    supportedSubmitMethods: ["get", "post"],
    syntaxHighlight: { activated: false },
  });
})();
