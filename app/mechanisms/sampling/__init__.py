"""Randomness: exact samplers on the system's generator. No other module draws noise."""
