"""Hypothesis settings: no deadline on slow machines, and failing examples that can be rerun."""

from hypothesis import settings

settings.register_profile("house", deadline=None, print_blob=True)
settings.load_profile("house")
