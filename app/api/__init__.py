"""HTTP: one file for each resource, wire models on top of the routes that use them."""
