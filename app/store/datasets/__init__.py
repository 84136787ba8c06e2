"""Registered datasets, their fingerprints and their books."""
