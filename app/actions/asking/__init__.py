"""Queries: preview, charge, answer, cancel; and the same for streams."""
