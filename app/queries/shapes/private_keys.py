"""Counts of keys that are not public: how far one person can move them, and how many keys.

A key is a text that some row has (in one of the public groups, where there are such); every row has
one key or none. A person has at most m rows, in at most m keys, and a key that only this person has
counts no more than the rows they put there.

    add_remove    the counts move by at most m in L1 and m in L2 (all rows in one key); at most m
                  keys come into being or vanish, all with one table: the one that has the person
    replace_one   2 m in L1, sqrt(2) m in L2 (all rows leave one key and enter another); at most m
                  keys vanish and at most m come into being

So of the keys that one of two neighbouring tables alone has, each table alone has at most m rows in
all: that is what a mechanism may show by mistake (`mechanisms/noise/tail_threshold.py`). Counted as
persons, a key moves by at most one, and at most m keys move, or 2 m under replace_one. This is
tested by brute force over all neighbours of small tables.
"""

from dataclasses import dataclass, replace
from typing import Literal

from app.data.card import Card
from app.queries.shapes.measures import Measure, row_measure
from app.queries.tally import KeyCountsRequest, Tally

NoiseName = Literal["laplace", "gaussian"]


@dataclass(frozen=True, slots=True)
class PrivateKeysShape:
    """Keys to ask the engine for, and how far a person moves them."""

    wanted: KeyCountsRequest
    counts: bool  # are the counts wanted too, or only which keys there are
    rows: int  # m: the most that one person has
    measure: Measure  # how far the counts of rows move
    keys: int  # how many keys' numbers of persons move
    noise: NoiseName = "laplace"  # what counts get
    alternatives: tuple["PrivateKeysShape", ...] = ()  # other ways to the same answer

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
