"""Noise scaled to the smooth sensitivity of the table."""
