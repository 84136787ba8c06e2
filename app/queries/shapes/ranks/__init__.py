"""The shape of questions about values at ranks."""
