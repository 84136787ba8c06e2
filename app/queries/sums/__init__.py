"""Counts, sums and what is computed from them."""
