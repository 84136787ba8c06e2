"""Regressions, and how certain their predictions are."""
