"""The values around a rank, of any number of rows, without reading them: by counts alone.

A first pass counts the rows in stretches of the column's whole range, which gives n and in which
stretch each wanted rank lies. Each further pass does the same within the stretch of the first
wanted rank and within that of the last one, until these are single values; a last pass lists the
values between them with their counts. What is between holds no more rows than are wanted, but for
ties, which are one value. So memory is bounded by the window and the number of stretches, and how
many passes there are depends on the column alone.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate

from app.queries.statistics import Condition, StepCounts, StepTally

PLACES_BITS = 12  # of stretches in a pass: more groups cost an engine more than one more pass

Ask = Callable[[StepTally], StepCounts]
Ranks = Callable[[int], tuple[int, int]]  # the first and the last wanted, of n rows


@dataclass(frozen=True, slots=True)
class Window:
    """Of n rows whose value is not missing, the values of the ranks from `first` on, in steps.
    Ranks are counted from 1; wanted ones that there are not are left out."""

    count: int
    first: int
    values: tuple[int, ...]

    @property
    def last(self) -> int:
        return self.first + len(self.values) - 1

    def __getitem__(self, rank: int) -> int:
        if not self.first <= rank <= self.last:
            raise IndexError("a rank that is not in the window")
        return self.values[rank - self.first]


def order_window(
    ask: Ask, where: Condition | None, column: str, bounds: tuple[int, int], ranks: Ranks
) -> Window:
    """`bounds` are those of the column in steps; `ranks` may depend on n."""
    low, high = bounds
    whole = StepTally(where, column, low, high, _shift(low, high))
    counts = ask(whole)
    n = sum(number for _, number in counts)
    first, last = ranks(n)
    first, last = max(first, 1), min(last, n)
    present = first <= last
    # Passes are made whether or not there is anything to find: how many there are tells nothing.
    start = _narrowed(ask, whole, counts, first if present else 1)
    end = _narrowed(ask, whole, counts, last if present else 1)
    between = ask(replace(whole, low=start.low, high=max(start.low, end.low), shift=0))
    if not present:
        return Window(n, 1, ())
    rank, values = start.before, []
    for place, number in between:
        wanted = min(last, rank + number) - max(first - 1, rank)
        values += [start.low + place] * max(0, wanted)
        rank += number
    return Window(n, first, tuple(values))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a rank is: a stretch from `low` on, with so many rows below it."""

    low: int
    before: int


def _narrowed(ask: Ask, whole: StepTally, counts: StepCounts, rank: int) -> _Place:
    """The single value at a rank: at most one stretch in each pass can hold it."""
    found = _holding(counts, whole, rank, 0)
    shift = whole.shift
    while shift > 0:
        top = min(found.low + (1 << shift) - 1, whole.high)
        finer = replace(whole, low=found.low, high=top, shift=max(0, shift - PLACES_BITS))
        found = _holding(ask(finer), finer, rank, found.before)
        shift = finer.shift
    return found


def _holding(counts: StepCounts, asked: StepTally, rank: int, before: int) -> _Place:
    if not counts:
        return _Place(asked.low, before)
    running = list(accumulate((number for _, number in counts), initial=before))
    index = min(bisect_left(running, rank, 1), len(counts))
    place = counts[index - 1][0]
    return _Place(asked.low + (place << asked.shift), running[index - 1])


def _shift(low: int, high: int) -> int:
    return max(0, (high - low).bit_length() - PLACES_BITS)
