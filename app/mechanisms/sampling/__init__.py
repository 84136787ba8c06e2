"""Randomness: exact samplers on the system's generator. Nothing else draws noise."""
