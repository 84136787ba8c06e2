"""How edges are held: each once, the smaller end first, and nothing that is no edge.

`v<i>` is the value of column i as it was read, or NULL. Rows of one edge are rows of one person, of
which one is kept (`cleaning.py`): so one row of a clean table is one edge, and neighbouring
graphs, which differ in an edge, differ in a row.
"""

from dataclasses import dataclass
from typing import Any, Self

from sqlalchemy import BigInteger, ColumnElement, String, and_, case, cast, column, func

from app.columns import IntegerColumn
from app.datasets import Card, EdgePerson
from app.engines.dialects import constant, quoted


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge's ends, by the place of their columns, and what tells edges apart: NULL where an end
    is no node or both are the same one."""

    ends: dict[int, ColumnElement[Any]]
    name: ColumnElement[Any]

    @classmethod
    def of(cls, card: Card) -> Self | None:
        if not isinstance(card.person, EdgePerson):
            return None
        places = {each.name: i for i, each in enumerate(card.columns)}
        one, other = (places[name] for name in card.person.ends)
        declared = card.columns[one]
        assert isinstance(declared, IntegerColumn), "the card was checked"
        values: list[ColumnElement[Any]] = [column(f"v{place}") for place in (one, other)]
        nodes = [each.between(constant(declared.low), constant(declared.high)) for each in values]
        there = and_(*nodes, values[0] != values[1])
        # Numbers that are no nodes are gone with their row, before they could be too large.
        low, high = (case((there, cut(*values))) for cut in (func.least, func.greatest))
        texts = (cast(each, String()) for each in (low, high))
        first, second = texts
        name = case((there, func.concat(first, quoted("-"), second)))
        return cls({one: cast(low, BigInteger()), other: cast(high, BigInteger())}, name)
