"""Finding the loss that a limit allows or an accuracy needs, in whole units of the ledger."""

from collections.abc import Callable

from app.accounting.rounding import PICO

EPSILON_UNITS_MAX = 10**6 * PICO


def last(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The last of the whole numbers from `low` for which it holds, if it holds up to some point."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return high if holds(high) else low
