"""Digits of the reference curves."""

from typing import Any

import mpmath
import pytest


@pytest.fixture(autouse=True)
def _digits() -> Any:
    with mpmath.workdps(40):
        yield
