"""Many counts in one query."""
