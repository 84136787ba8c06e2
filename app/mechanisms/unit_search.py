"""Search for the loss that a limit allows or an accuracy needs, in ledger units."""

from collections.abc import Callable

from app.accounting.units import PICO

EPSILON_UNITS_MAX = 10**6 * PICO


def largest_satisfying(
    holds: Callable[[int], bool], low: int, high: int, near: float | None = None
) -> int:
    """Largest integer in [low, high] that satisfies a monotone predicate.

    The predicate holds up to some integer and not beyond. `near` is a guess: a good one saves most
    of the bisection, and no guess changes the result.
    """
    if near is not None and low < near < high:
        margin = 1 + int(near * 1e-9)
        for middle in (int(near) - margin, int(near) + margin):
            if low < middle < high:
                low, high = (middle, high) if holds(middle) else (low, middle)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return high if holds(high) else low
