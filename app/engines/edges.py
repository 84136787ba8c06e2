"""How edges are held: each once, the smaller end first, and nothing that is no edge.

`v<i>` is the value of column i as it was read, or NULL. Rows of one edge are rows of one person, of
which one is kept (`cleaning.py`): so one row of a prepared version is one edge, and neighbouring
graphs, which differ in an edge, differ in a row.
"""

from dataclasses import dataclass
from typing import Self

from app.datasets import Card, EdgePerson, IntegerColumn


@dataclass(frozen=True, slots=True)
class Edge:
    """The SQL of an edge's ends, by the place of their columns, and of what tells edges apart:
    NULL where an end is no node or both are the same one."""

    ends: dict[int, str]
    name: str

    @classmethod
    def of(cls, card: Card) -> Self | None:
        if not isinstance(card.person, EdgePerson):
            return None
        places = {column.name: i for i, column in enumerate(card.columns)}
        one, other = (places[name] for name in card.person.ends)
        column = card.columns[one]
        assert isinstance(column, IntegerColumn), "the card was checked"
        node = f"BETWEEN {column.low:d} AND {column.high:d}"
        low, high = f"least(v{one}, v{other})", f"greatest(v{one}, v{other})"
        there = f"v{one} {node} AND v{other} {node} AND v{one} <> v{other}"
        name = f"CASE WHEN {there} THEN concat({low}, '-', {high}) END"
        # A number that is no node is gone with its row: until then it only has to fit.
        ends = {one: f"TRY_CAST({low} AS BIGINT)", other: f"TRY_CAST({high} AS BIGINT)"}
        return cls(ends, name)
