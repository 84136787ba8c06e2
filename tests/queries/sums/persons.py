"""Tables of persons, and a reference for tallies of persons in plain Python.

A table is a list of persons, each given by their rows. A person's own order of rows decides which
of their groups are kept. Any order works: here it is by a hash.
"""

import hashlib
from typing import Any

from app.data.card import Card
from app.queries.shapes.sums import SumShape
from app.queries.tally import Exact, Persons, PersonTotal, Tally
from tests.queries.reference import Row, Vectors, group_index, holds, in_steps

Person = list[Row]


def own_order(rows: Person) -> Person:
    return sorted(rows, key=lambda row: hashlib.md5(repr(row).encode()).hexdigest())


def group_of(tally: Tally, row: Row) -> int | None:
    group = 0
    for grouping in tally.groups:
        inside = group_index(grouping, row)
        if inside is None:
            return None
        group = group * len(grouping.labels()) + inside
    return group


def entries(tally: Tally, rows: Person) -> dict[int, list[Row]]:
    """Rows of a person that count, by kept group, in the order of the rows."""
    (column,) = {each.column for each in tally.aggregates}  # type: ignore[union-attr]
    rows_by_group: dict[int, list[Row]] = {}
    for row in rows:
        group = group_of(tally, row)
        if group is None or not holds(tally.where, row):
            continue
        if column is None or row[column] is not None:
            rows_by_group.setdefault(group, []).append(row)
    return dict(list(rows_by_group.items())[: tally.groups_max])


def tallied_persons(card: Card, tally: Tally, table: list[Person]) -> Exact:
    """Tally persons whose rows are in their own order."""
    results = [[0] * tally.group_count() for _ in tally.aggregates]
    for person in table:
        for group, rows in entries(tally, person).items():
            for result, aggregate in zip(results, tally.aggregates, strict=True):
                result[group] += number(card, aggregate, rows)
    return tuple(map(tuple, results))


def number(card: Card, aggregate: Any, rows: list[Row]) -> int:
    if isinstance(aggregate, Persons):
        return 1
    assert isinstance(aggregate, PersonTotal)
    total = sum(in_steps(card, aggregate.column, row[aggregate.column]) for row in rows)
    return min(max(total, aggregate.low), aggregate.high)


def measured_persons(card: Card, shape: SumShape, table: list[Person]) -> Vectors:
    exact = tallied_persons(card, shape.tally, [own_order(person) for person in table])
    return tuple(
        tuple(
            sum(coefficient * exact[index][group] for coefficient, index in measure.terms)
            for group in range(shape.tally.group_count())
        )
        for measure in shape.measures
    )
