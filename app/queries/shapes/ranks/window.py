"""The values around ranks, of any number of rows, without reading them: by counts alone.

A first pass counts the rows in stretches of the column's whole range, which gives n and in which
stretch each end of each window lies. Each further pass does the same within the stretches of all
the ends together, until these are single values; a last pass lists the values between the ends with
their counts. What is between holds no more rows than are wanted, but for ties, which are one value.
So memory is bounded by the windows and the number of stretches, and how many passes there are
depends on the column alone.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import accumulate

from app.queries.tally import Condition, StepCounts, StepHistogram

PLACES_BITS = 12  # of stretches in a pass: more groups cost an engine more than one more pass

Ask = Callable[[StepHistogram], StepCounts]
Span = tuple[int, int]  # the first and the last of something, both included
Ranks = Callable[[int], tuple[Span, ...]]  # of n rows, the ranks wanted, window by window


@dataclass(frozen=True, slots=True)
class Window:
    """Of n rows, the values of the ranks from `first` on, in steps. Ranks are counted from 1;
    wanted ones that there are not are left out. Rank 0 is the lower bound of the column, and rank
    n + 1 the upper one: so far a value could move if rows came or went."""

    bounds: Span
    count: int
    first: int
    values: tuple[int, ...]

    @property
    def last(self) -> int:
        return self.first + len(self.values) - 1

    def __getitem__(self, rank: int) -> int:
        if rank == 0:
            return self.bounds[0]
        if rank == self.count + 1:
            return self.bounds[1]
        if not self.first <= rank <= self.last:
            raise IndexError("a rank that is not in the window")
        return self.values[rank - self.first]


def order_windows(
    ask: Ask, where: Condition | None, column: str, bounds: Span, ranks: Ranks
) -> tuple[Window, ...]:
    """`bounds` are those of the column in steps; `ranks` may depend on n."""
    low, high = bounds
    whole = StepHistogram(where, column, low, _shift(low, high), (bounds,))
    counts = ask(whole)
    n = sum(number for _, number in counts)
    spans = [(max(first, 1), min(last, n)) for first, last in ranks(n)]
    # Passes are made whether or not there is anything to find: how many there are tells nothing.
    ends = [rank if first <= last else 1 for first, last in spans for rank in (first, last)]
    found = _narrowed(ask, whole, counts, ends)
    pairs = list(zip(found[::2], found[1::2], strict=True))
    together = _merged((start.low, max(start.low, end.low)) for start, end in pairs)
    between = ask(replace(whole, shift=0, ranges=together))
    return tuple(
        Window(bounds, n, first, _listed(between, low, start, end, (first, last)))
        if first <= last
        else Window(bounds, n, 1, ())
        for (first, last), (start, end) in zip(spans, pairs, strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a rank is: a stretch from `low` on, with so many rows below it."""

    low: int
    before: int


def _listed(
    between: StepCounts, low: int, start: _Place, end: _Place, span: Span
) -> tuple[int, ...]:
    """The values of the ranks of a span, which are from `start` to `end`."""
    (first, last), rank = span, start.before
    values: list[int] = []
    for place, number in between:
        if start.low <= low + place <= end.low:
            wanted = min(last, rank + number) - max(first - 1, rank)
            values += [low + place] * max(0, wanted)
            rank += number
    return tuple(values)


def _narrowed(ask: Ask, whole: StepHistogram, counts: StepCounts, ranks: list[int]) -> list[_Place]:
    """The single value at each rank: at most one stretch in each pass can hold it."""
    shift, ((_, high),) = whole.shift, whole.ranges
    found = [_holding(counts, whole, rank, _Place(whole.low, 0)) for rank in ranks]
    while shift > 0:
        tops = [min(place.low + (1 << shift) - 1, high) for place in found]
        lows = [place.low for place in found]
        shift = max(0, shift - PLACES_BITS)
        finer = replace(whole, shift=shift, ranges=_merged(zip(lows, tops, strict=True)))
        counts = ask(finer)
        found = [
            _holding(_within(counts, finer, place.low, top), finer, rank, place)
            for rank, place, top in zip(ranks, found, tops, strict=True)
        ]
    return found


def _within(counts: StepCounts, asked: StepHistogram, low: int, high: int) -> StepCounts:
    first, last = (low - asked.low) >> asked.shift, (high - asked.low) >> asked.shift
    start = bisect_left(counts, first, key=_place_of)
    return counts[start : bisect_left(counts, last + 1, key=_place_of)]


def _place_of(counted: tuple[int, int]) -> int:
    return counted[0]


def _holding(counts: StepCounts, asked: StepHistogram, rank: int, among: _Place) -> _Place:
    if not counts:
        return among
    running = list(accumulate((number for _, number in counts), initial=among.before))
    index = min(bisect_left(running, rank, 1), len(counts))
    place = counts[index - 1][0]
    return _Place(asked.low + (place << asked.shift), running[index - 1])


def _merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The same steps as spans that are apart, in order."""
    merged: list[Span] = []
    for low, high in sorted(spans):
        if merged and low <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], high)
        else:
            merged.append((low, high))
    return tuple(merged)


def _shift(low: int, high: int) -> int:
    return max(0, (high - low).bit_length() - PLACES_BITS)
