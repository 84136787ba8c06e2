"""Pages for people: drawn on the server, and built on the JSON interface alone."""
