// Swagger UI for the description of the interface. Requests that spend or change are switched off.
"use strict";
(() => {
  const place = document.getElementById("swagger");
  SwaggerUIBundle({
    url: place.dataset.description,
    domNode: place,
    deepLinking: false,
    validatorUrl: null,
    docExpansion: "none",
    defaultModelsExpandDepth: -1,
    supportedSubmitMethods: ["get"],
  });
})();
