"""The sets of conditions that a row can meet, compared with every row that a small card allows."""

import datetime
import math
from itertools import product
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.data.card import Card
from app.queries.shapes.overlap import distinct, met_by, pieces_of, product_size
from app.queries.tally import (
    AllOf,
    AnyOf,
    Compare,
    Condition,
    IsMissing,
    Negation,
    OneOf,
)
from tests.effort import examples
from tests.queries.cards import card
from tests.queries.reference import holds

DAY = datetime.date(2020, 1, 1)
DAYS = [DAY + datetime.timedelta(days=i) for i in range(4)]
CARD: Card = card(
    [
        {"name": "age", "type": "integer", "low": 0, "high": 4},
        {"name": "rate", "type": "number", "low": -1.0, "high": 1.0},
        {"name": "city", "type": "category", "values": ["a", "b", "c"]},
        {"name": "member", "type": "boolean"},
        {"name": "born", "type": "date", "low": "2020-01-01", "high": "2020-01-04"},
    ]
)
COMPARED: dict[str, list[Any]] = {
    "age": [-1, 0, 1, 1.5, 3, 4, 4.5, 10**18, 2**53 + 1],
    "rate": [-2, -1, -1.0, 0, 0.25, 1, 1e18],
    "city": ["a", "b", "c"],
    "member": [False, True],
    "born": [*DAYS, datetime.date(1900, 1, 1), datetime.date.max],
}
STORED: dict[str, list[Any]] = {
    "age": [None, 0, 1, 2, 3, 4],
    "rate": [
        None,
        *(
            stored
            for value in (-1.0, 0.0, 0.25, 1.0)
            for stored in (math.nextafter(value, -2), value, math.nextafter(value, 2))
            if -1 <= stored <= 1
        ),
        0.1,
        0.9,
        -0.0,
    ],
    "city": [None, "a", "b", "c"],
    "member": [None, False, True],
    "born": [None, *DAYS],
}


@st.composite
def leaves(draw: st.DrawFn, names: list[str]) -> Condition:
    name = draw(st.sampled_from(names))
    value = st.sampled_from(COMPARED[name])
    kind = draw(st.sampled_from(["compare", "compare", "one of", "missing"]))
    if kind == "missing":
        return IsMissing(name)
    if kind == "one of":
        return OneOf(name, tuple(draw(st.lists(value, max_size=3))))
    order = ("<", "<=", ">", ">=") if name not in ("city", "member") else ()
    sign: Any = draw(st.sampled_from(("==", "!=", *order)))
    return Compare(name, sign, draw(value))


def trees(names: list[str]) -> st.SearchStrategy[Condition]:
    return st.recursive(
        leaves(names),
        lambda parts: (
            parts.map(Negation)
            | st.lists(parts, max_size=3).map(lambda each: AllOf(tuple(each)))
            | st.lists(parts, max_size=3).map(lambda each: AnyOf(tuple(each)))
        ),
        max_leaves=5,
    )


pairs = st.lists(st.sampled_from(list(COMPARED)), min_size=1, max_size=2, unique=True)


@examples(300)
@given(
    pairs.flatmap(
        lambda names: st.tuples(
            st.just(names),
            st.lists(trees(names), min_size=1, max_size=9),
            st.none() | trees(names),
        )
    )
)
def test_the_sets_are_exactly_those_that_rows_meet(
    asked: tuple[list[str], list[Condition], Condition | None],
) -> None:
    names, conditions, where = asked
    looked_at = [*conditions, *([] if where is None else [where])]
    pieces = pieces_of(looked_at, CARD)
    met = met_by(tuple(conditions), pieces, where)
    assert met.shape == (len(conditions), product_size(pieces))
    sets = {tuple(map(bool, column)) for column in distinct(met).T}
    expected = set()
    for values in product(*(STORED[name] for name in names)):
        row = dict(zip(names, values, strict=True))
        kept = where is None or holds(where, row)
        expected.add(tuple(kept and holds(condition, row) for condition in conditions))
    expected.discard((False,) * len(conditions))
    assert sets == expected
