"""Values around ranks, for any number of rows, from counts alone without reading rows.

A first pass counts the rows in bins of the column's whole range, which gives n and the bin of each
end of each window. Each further pass does the same within the bins of all the ends together, until
these are single values. A last pass lists the values between the ends with their counts. The range
between the ends holds no more rows than requested, except ties, which are one value. So memory is
bounded by the windows and the number of bins, and the number of passes depends on the column alone.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import accumulate

from app.queries.tally import Condition, StepCounts, StepHistogram

PLACES_BITS = 12  # log2 of the bins in a pass: more groups cost an engine more than one more pass

HistogramReader = Callable[[StepHistogram], StepCounts]
Span = tuple[int, int]  # first and last, both included
Ranks = Callable[[int], tuple[Span, ...]]  # maps n to the ranks of each window


@dataclass(frozen=True, slots=True)
class Window:
    """Values of the ranks from `first` on, among n rows, in steps.

    Ranks are counted from 1; requested ranks that do not exist are left out. Rank 0 is the lower
    bound of the column, and rank n + 1 the upper one: a value could move that far if rows were
    added or removed."""

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
            raise IndexError("the rank is not in the window")
        return self.values[rank - self.first]


def order_windows(
    ask: HistogramReader, where: Condition | None, column: str, bounds: Span, ranks: Ranks
) -> tuple[Window, ...]:
    """Read all windows; `bounds` are those of the column in steps, and `ranks` may depend on n."""
    low, high = bounds
    whole = StepHistogram(where, column, low, _shift(low, high), (bounds,))
    counts = ask(whole)
    n = sum(number for _, number in counts)
    spans = [(max(first, 1), min(last, n)) for first, last in ranks(n)]
    # All passes are made even if there is nothing to find: their number reveals nothing.
    ends = [rank if first <= last else 1 for first, last in spans for rank in (first, last)]
    ends_at = _narrowed(ask, whole, counts, ends)
    pairs = list(zip(ends_at[::2], ends_at[1::2], strict=True))
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
    """Position of a rank: a bin from `low` on, with `before` rows below it."""

    low: int
    before: int


def _listed(
    between: StepCounts, low: int, start: _Place, end: _Place, span: Span
) -> tuple[int, ...]:
    """Values of the ranks of a span, which lie from `start` to `end`."""
    (first, last), rank = span, start.before
    values: list[int] = []
    for index, number in between:
        if start.low <= low + index <= end.low:
            repeats = min(last, rank + number) - max(first - 1, rank)
            values += [low + index] * max(0, repeats)
            rank += number
    return tuple(values)


def _narrowed(
    ask: HistogramReader, whole: StepHistogram, counts: StepCounts, ranks: list[int]
) -> list[_Place]:
    """The single value at each rank: at most one bin in each pass can hold it."""
    shift, ((_, high),) = whole.shift, whole.ranges
    positions = [_holding(counts, whole, rank, _Place(whole.low, 0)) for rank in ranks]
    while shift > 0:
        tops = [min(position.low + (1 << shift) - 1, high) for position in positions]
        lows = [position.low for position in positions]
        shift = max(0, shift - PLACES_BITS)
        finer = replace(whole, shift=shift, ranges=_merged(zip(lows, tops, strict=True)))
        counts = ask(finer)
        positions = [
            _holding(_within(counts, finer, position.low, top), finer, rank, position)
            for rank, position, top in zip(ranks, positions, tops, strict=True)
        ]
    return positions


def _within(counts: StepCounts, request: StepHistogram, low: int, high: int) -> StepCounts:
    first, last = (low - request.low) >> request.shift, (high - request.low) >> request.shift
    start = bisect_left(counts, first, key=_place_of)
    return counts[start : bisect_left(counts, last + 1, key=_place_of)]


def _place_of(counted: tuple[int, int]) -> int:
    return counted[0]


def _holding(counts: StepCounts, request: StepHistogram, rank: int, among: _Place) -> _Place:
    if not counts:
        return among
    running = list(accumulate((number for _, number in counts), initial=among.before))
    index = min(bisect_left(running, rank, 1), len(counts))
    index_of_bin = counts[index - 1][0]
    return _Place(request.low + (index_of_bin << request.shift), running[index - 1])


def _merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The same steps as disjoint spans, in order."""
    merged: list[Span] = []
    for low, high in sorted(spans):
        if merged and low <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], high)
        else:
            merged.append((low, high))
    return tuple(merged)


def _shift(low: int, high: int) -> int:
    return max(0, (high - low).bit_length() - PLACES_BITS)
