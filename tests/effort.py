"""How hard the tests try: at full strength in `make test`, with a few cases in `make check`."""

from collections.abc import Iterable
from typing import Any

import pytest
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


def thorough_after(count: int, cases: Iterable[Any]) -> list[Any]:
    """Cases for `parametrize`; `make check` leaves out those after the first few.

    A tuple holds the values of several parameters.
    """
    listed = list(cases)
    return [*listed[:count], *(_thorough(case) for case in listed[count:])]


def thorough_except(kept: Iterable[Any], cases: Iterable[Any]) -> list[Any]:
    """Cases for `parametrize`; `make check` leaves out all but these."""
    chosen = list(kept)
    return [case if case in chosen else _thorough(case) for case in cases]


def _thorough(case: Any) -> Any:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.thorough)
