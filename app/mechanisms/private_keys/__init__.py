"""Release of keys that are not public, and of their counts."""
