"""Regressions, and the variance of their predictions."""
