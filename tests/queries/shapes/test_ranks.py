"""An added row moves ranks by at most one, and n is fixed only if no person can change it."""

from fractions import Fraction
from itertools import pairwise

import pytest

from app.errors import Invalid
from app.queries.shapes.ranks.rank import (
    RankFromAbove,
    RankFromBelow,
    RankRule,
    ShareRank,
    TrimmedRank,
)
from app.queries.shapes.ranks.shape import order_shape
from app.queries.tally import IsMissing, StepCounts, StepHistogram, Tally
from tests.queries.cards import card, question

RULES: list[RankRule] = [
    *(ShareRank(Fraction(a, b)) for a, b in [(1, 2), (1, 10), (1, 3), (9, 10), (1, 1), (3, 7)]),
    *(rule(k) for rule in (RankFromBelow, RankFromAbove) for k in (1, 2, 5, 1000)),
    *(TrimmedRank(Fraction(t, 20), last) for t in (1, 3, 9) for last in (False, True)),
]


@pytest.mark.parametrize("rule", RULES)
def test_an_added_row_moves_the_rank_by_at_most_one(rule: RankRule) -> None:
    ranks = [rule(n) for n in range(300)]
    assert ranks[0] == 0
    assert all(1 <= rank <= n for n, rank in enumerate(ranks) if n)
    assert {two - one for one, two in pairwise(ranks)} <= {0, 1}


def test_a_share_q_of_n_rows_is_the_rank_that_rounds_q_n_up() -> None:
    assert ShareRank(Fraction(1, 2))(7) == 4
    assert ShareRank(Fraction(1, 4))(8) == 2
    assert ShareRank(Fraction(9, 10))(8) == 8
    assert ShareRank(Fraction(1, 10))(3) == 1


@pytest.mark.parametrize(
    ("neighbours", "rows_max", "filtered", "missing", "expected"),
    [
        ("add_remove", None, False, 0, (False, 1)),
        ("add_remove", 3, False, None, (False, 3)),
        ("replace_one", None, False, 0, (True, 2)),
        ("replace_one", None, False, None, (False, 2)),
        ("replace_one", None, True, 0, (False, 2)),
        ("replace_one", 3, False, 0, (False, 6)),
        ("replace_one", 1, False, 0, (False, 2)),
    ],
)
def test_n_is_fixed_only_for_the_whole_table_under_replace_one(
    neighbours: str,
    rows_max: int | None,
    filtered: bool,
    missing: int | None,
    expected: tuple[bool, int],
) -> None:
    where = IsMissing("city") if filtered else None
    made = card(neighbours=neighbours, rows_max=rows_max)
    shape = order_shape(made, "age", where, "rank", (RankFromBelow(1),), missing)
    assert (shape.fixed, shape.moves) == expected
    assert shape.tally.where == where


def test_missing_values_count_as_the_declared_value() -> None:
    shape = order_shape(card(), "age", None, "rank", (ShareRank(Fraction(1, 2)),), 40)
    rows = [3, 5, 90]

    def steps(wanted: StepHistogram) -> StepCounts:
        inside = [r for r in rows if any(a <= r <= b for a, b in wanted.ranges)]
        places = [(r - wanted.low) >> wanted.shift for r in inside]
        return sorted((place, places.count(place)) for place in set(places))

    def exact(tally: Tally) -> tuple[tuple[int, ...], ...]:
        assert tally == shape.missing_tally
        return ((4,),)

    (window,) = shape.windows(steps, exact, 10)
    assert window.values == (3, 5, 40, 40, 40, 40, 90)
    assert window[0] == 0
    assert window[8] == 100


def test_a_column_narrower_than_its_grid_is_refused() -> None:
    narrow = card([{"name": "x", "type": "number", "low": 1.0, "high": 1.0 + 1e-14}])
    with pytest.raises(Invalid) as refused:
        order_shape(narrow, "x", None, "rank", (RankFromBelow(1),), None)
    assert refused.value.fields[0].pointer == "/query/column"
    chosen = question({"kind": "median", "column": "x", "candidates": [1.0]}).query
    assert chosen.shape(narrow).alternatives == ()  # a choice still works there


@pytest.mark.parametrize(
    ("column", "missing", "pointer"),
    [
        ("age", 101, "/query/missing"),
        ("age", 1.5, "/query/missing"),
        ("income", -11, "/query/missing"),
        ("city", None, "/query/column"),
        ("born", None, "/query/column"),
    ],
)
def test_an_unsuitable_column_is_named(column: str, missing: float | None, pointer: str) -> None:
    with pytest.raises(Invalid) as refused:
        order_shape(card(), column, None, "rank", (RankFromBelow(1),), missing)
    assert refused.value.fields[0].pointer == pointer
