"""Additive noise on integers: Laplace and Gaussian mechanisms and their releases."""
