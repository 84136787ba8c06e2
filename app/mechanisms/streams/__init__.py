"""Mechanisms that answer many questions for one charge."""
