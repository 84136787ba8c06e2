"""Counts, sums and statistics computed from them."""
