"""Finding the loss that a limit allows or an accuracy needs, in whole units of the ledger."""

from collections.abc import Callable

from app.accounting.units import PICO

EPSILON_UNITS_MAX = 10**6 * PICO


def last(holds: Callable[[int], bool], low: int, high: int, near: float | None = None) -> int:
    """The last of the whole numbers from `low` for which it holds, if it holds up to some point.
    `near` is a guess: a good one saves most of the halving, and none changes what is found."""
    if near is not None and low < near < high:
        margin = 1 + int(near * 1e-9)
        for middle in (int(near) - margin, int(near) + margin):
            if low < middle < high:
                low, high = (middle, high) if holds(middle) else (low, middle)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return high if holds(high) else low
