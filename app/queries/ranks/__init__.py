"""Queries about the values at ranks."""
