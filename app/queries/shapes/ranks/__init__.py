"""Shape of queries about values at ranks."""
