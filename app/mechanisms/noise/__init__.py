"""Additive noise on whole numbers: Laplace and Gaussian mechanisms and their releases."""
