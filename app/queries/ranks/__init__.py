"""Questions about the values at ranks."""
