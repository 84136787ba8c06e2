"""Counts of keys that are not public: sensitivity of the counts, and number of keys one person has.

A key is a text that some row has (in one of the public groups, if there are any); every row has one
key or none. A person has at most m rows, in at most m keys, and a key that only this person has
counts no more than their rows.

    add_remove    the counts move by at most m in L1 and m in L2 (all rows in one key); at most m
                  keys appear or vanish, all in the table that has the person
    replace_one   2 m in L1, sqrt(2) m in L2 (all rows leave one key and enter another); at most m
                  keys vanish and at most m appear

So consider the keys that only one of two neighbouring tables has. Each table has at most m rows in
such keys: a mechanism may reveal them by mistake (`mechanisms/noise/tail_threshold.py`). Counted as
persons, a key moves by at most one, and at most m keys move, or 2 m under replace_one. Brute-force
tests check this over all neighbours of small tables.
"""

from dataclasses import dataclass, replace
from typing import Literal

from app.data.card import Card
from app.queries.shapes.measures import Measure, row_measure
from app.queries.tally import KeyCountsRequest, Tally

NoiseName = Literal["laplace", "gaussian"]


@dataclass(frozen=True, slots=True)
class PrivateKeysShape:
    """Keys to request from the engine, and their sensitivity to a person."""

    wanted: KeyCountsRequest
    counts: bool  # true if counts are released too, false for keys alone
    rows: int  # m: largest number of rows of one person
    measure: Measure  # sensitivity of the counts of rows
    keys: int  # number of keys whose number of persons moves
    noise: NoiseName = "laplace"  # noise on the counts
    alternatives: tuple["PrivateKeysShape", ...] = ()  # other shapes of the same query

    @property
    def tally(self) -> Tally:
        return self.wanted.tally


def keys_shape(card: Card, tally: Tally, column: str, *, counts: bool) -> PrivateKeysShape:
    rows = card.person.rows_max
    shape = PrivateKeysShape(
        wanted=KeyCountsRequest(tally, column, persons=not counts and rows > 1),
        counts=counts,
        rows=rows,
        measure=row_measure(card, "count", low=1, high=1, grouped=True, grid_exponent=0),
        keys=rows * (2 if card.neighbours == "replace_one" else 1),
    )
    return replace(shape, alternatives=(replace(shape, noise="gaussian"),)) if counts else shape
