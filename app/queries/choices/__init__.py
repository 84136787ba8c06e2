"""Queries whose answer is one of several public outcomes."""
