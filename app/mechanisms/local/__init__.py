"""Local privacy: every row is randomized on its own."""
