"""Many counts in one question."""
