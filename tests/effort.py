"""How many examples a property is tried with: all in `make test`, a few in `make check`."""

from typing import Any

from hypothesis import settings


def is_quick() -> bool:
    """Whether `make check` runs, which loads the profile `quick` before it imports the tests."""
    return settings.get_current_profile_name() == "quick"


def examples(full: int, **more: Any) -> settings:
    """Settings with this many examples, or with no more than those of the profile `quick`.

    An explicit `max_examples` would override the profile.
    """
    if not is_quick():
        return settings(max_examples=full, **more)
    quick = settings.get_profile("quick").max_examples
    return settings(max_examples=min(full, quick), **more)
