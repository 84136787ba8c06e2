"""Bursar: a privacy-budget accountant service."""
