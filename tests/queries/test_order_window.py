"""The window of order statistics: against sorting, and by a bounded number of passes."""

from hypothesis import given
from hypothesis import strategies as st

from app.queries.order_window import PLACES_BITS, Window, order_window
from app.queries.statistics import StepCounts, StepTally


class Table:
    """Counts of a list of steps, and how often it was asked for."""

    def __init__(self, steps: list[int]) -> None:
        self.steps = steps
        self.largest = self.asked = 0

    def __call__(self, wanted: StepTally) -> StepCounts:
        self.asked += 1
        counts: dict[int, int] = {}
        for step in self.steps:
            if wanted.low <= step <= wanted.high:
                place = (step - wanted.low) >> wanted.shift
                counts[place] = counts.get(place, 0) + 1
        self.largest = max(self.largest, len(counts))
        return sorted(counts.items())


BOUNDS = [(0, 1), (0, 120), (-5000, 5000), (0, 1 << 34), (-(1 << 53), 1 << 53)]


@st.composite
def tables(draw: st.DrawFn) -> tuple[tuple[int, int], list[int]]:
    low, high = draw(st.sampled_from(BOUNDS))
    few = draw(st.lists(st.integers(low, high), min_size=1, max_size=4))
    return (low, high), draw(st.lists(st.integers(low, high) | st.sampled_from(few), max_size=60))


@given(tables(), st.integers(-5, 70), st.integers(0, 20))
def test_the_window_is_what_sorting_gives(
    table: tuple[tuple[int, int], list[int]], first: int, wide: int
) -> None:
    bounds, steps = table
    ordered = sorted(steps)
    found = order_window(Table(steps), None, "x", bounds, lambda n: (first, first + wide))
    assert found.count == len(ordered)
    wanted = [rank for rank in range(first, first + wide + 1) if 1 <= rank <= len(ordered)]
    assert [found[rank] for rank in wanted] == [ordered[rank - 1] for rank in wanted]
    assert len(found.values) == len(wanted)


@given(tables())
def test_how_often_is_asked_does_not_depend_on_the_rows(
    table: tuple[tuple[int, int], list[int]],
) -> None:
    bounds, steps = table
    empty, full = Table([]), Table(steps)
    for each in (empty, full):
        order_window(each, None, "x", bounds, lambda n: (n // 2 - 3, n // 2 + 3))
    assert empty.asked == full.asked


def test_many_rows_cost_no_more_memory_than_stretches_and_the_window() -> None:
    high = (1 << 34) - 1
    table = Table([i * 7919 * 104729 % (high + 1) for i in range(60_000)])
    found = order_window(table, None, "x", (0, high), lambda n: (n // 2 - 50, n // 2 + 50))
    assert found.values == tuple(sorted(table.steps)[found.first - 1 : found.last])
    assert table.largest <= 1 << PLACES_BITS
    tied = Table([5] * 60_000)
    assert order_window(tied, None, "x", (0, high), lambda n: (1, 9)).values == (5,) * 9
    assert tied.largest == 1


def test_no_rows_have_no_window() -> None:
    found = order_window(Table([]), None, "x", (0, 100), lambda n: (1, 5))
    assert found == Window(0, 1, ())
