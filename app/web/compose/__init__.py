"""Questions in forms: fields of each kind, the body of a form, and words and code for it."""
