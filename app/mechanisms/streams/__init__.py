"""Mechanisms that answer many queries for one charge."""
