"""Renyi curves, Gaussian trade-offs and their conversion, rounded to whole units."""
