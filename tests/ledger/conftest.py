"""Properties are checked however slow the machine is, and a failing example can be run again."""

from hypothesis import settings

settings.register_profile("house", deadline=None, print_blob=True)
settings.load_profile("house")
