"""The window of order statistics: compared with sorting, in a bounded number of passes."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from app.queries.shapes.ranks.window import PLACES_BITS, HistogramReader, Window, order_windows
from app.queries.tally import StepCounts, StepHistogram


class Table:
    """Counts of a list of steps, which records the number of passes."""

    def __init__(self, steps: list[int]) -> None:
        self.steps = steps
        self.largest = self.asked = 0

    def __call__(self, request: StepHistogram) -> StepCounts:
        self.asked += 1
        counts: dict[int, int] = {}
        for step in self.steps:
            if any(low <= step <= high for low, high in request.ranges):
                place = (step - request.low) >> request.shift
                counts[place] = counts.get(place, 0) + 1
        self.largest = max(self.largest, len(counts))
        return sorted(counts.items())


def order_window(
    ask: HistogramReader, bounds: tuple[int, int], ranks: Callable[[int], tuple[int, int]]
) -> Window:
    """A single window."""
    (found,) = order_windows(ask, None, "x", bounds, lambda n: (ranks(n),))
    return found


BOUNDS = [(0, 1), (0, 120), (-5000, 5000), (0, 1 << 34), (-(1 << 53), 1 << 53)]


@st.composite
def tables(draw: st.DrawFn) -> tuple[tuple[int, int], list[int]]:
    low, high = draw(st.sampled_from(BOUNDS))
    few = draw(st.lists(st.integers(low, high), min_size=1, max_size=4))
    return (low, high), draw(st.lists(st.integers(low, high) | st.sampled_from(few), max_size=60))


@given(tables(), st.integers(-5, 70), st.integers(0, 20))
def test_the_window_equals_the_sorted_values(
    table: tuple[tuple[int, int], list[int]], first: int, wide: int
) -> None:
    bounds, steps = table
    ordered = sorted(steps)
    window = order_window(Table(steps), bounds, lambda n: (first, first + wide))
    assert window.count == len(ordered)
    ranks = [rank for rank in range(first, first + wide + 1) if 1 <= rank <= len(ordered)]
    assert [window[rank] for rank in ranks] == [ordered[rank - 1] for rank in ranks]
    assert len(window.values) == len(ranks)


@given(tables())
def test_the_number_of_passes_does_not_depend_on_the_rows(
    table: tuple[tuple[int, int], list[int]],
) -> None:
    bounds, steps = table
    empty, full = Table([]), Table(steps)
    for each in (empty, full):
        order_window(each, bounds, lambda n: (n // 2 - 3, n // 2 + 3))
    assert empty.asked == full.asked


def test_many_rows_need_no_more_memory_than_intervals_and_the_window() -> None:
    high = (1 << 34) - 1
    table = Table([i * 7919 * 104729 % (high + 1) for i in range(60_000)])
    found = order_window(table, (0, high), lambda n: (n // 2 - 50, n // 2 + 50))
    assert found.values == tuple(sorted(table.steps)[found.first - 1 : found.last])
    assert table.largest <= 1 << PLACES_BITS
    tied = Table([5] * 60_000)
    assert order_window(tied, (0, high), lambda n: (1, 9)).values == (5,) * 9
    assert tied.largest == 1


def test_an_empty_table_has_an_empty_window() -> None:
    found = order_window(Table([]), (0, 100), lambda n: (1, 5))
    assert found == Window((0, 100), 0, 1, ())


@given(tables(), st.lists(st.tuples(st.integers(-5, 70), st.integers(0, 20)), max_size=3))
def test_several_windows_need_no_more_passes_than_one(
    table: tuple[tuple[int, int], list[int]], spans: list[tuple[int, int]]
) -> None:
    bounds, steps = table
    ordered, together, alone = sorted(steps), Table(steps), Table(steps)
    order_window(alone, bounds, lambda n: (1, 1))
    wanted = tuple((first, first + wide) for first, wide in spans)
    found = order_windows(together, None, "x", bounds, lambda n: wanted)
    assert together.asked == alone.asked
    for (first, last), window in zip(wanted, found, strict=True):
        ranks = [rank for rank in range(first, last + 1) if 1 <= rank <= len(ordered)]
        assert window.values == tuple(ordered[rank - 1] for rank in ranks)
        assert (window[0], window[len(ordered) + 1]) == bounds
