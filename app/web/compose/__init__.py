"""Questions in forms: fields of each kind, the body that a form means, and words and code for it."""
