"""Declared cells that a query can touch: the basis of parallel composition.

Theorem: McSherry 2009, and for an adaptive analyst one total for each cell (Sage, Lecuyer et al.
2019): consider neighbours that differ by one person of cell j. They give the same exact answer to
every query that no row of cell j can change, so j pays only for the other queries.
Assumes: a person is in one cell. They have one row, or the owner has promised so and the engine has
kept rows of one cell only (`engines/sql/cleaning.py`). Every stored value fits the card. Under
replace_one a person leaves one cell and enters another, and the spends of the two largest cells add
up. A query about several cells would count twice there, so it is charged as one about all, which
counts once.
Rounding: a cell is left out only if the condition is false for every row it could hold.
"""

from dataclasses import dataclass
from typing import Any

from app.data.card import Card
from app.data.columns import EpochColumn
from app.planning.cell_reachability import reach
from app.planning.partition import cell_column, declared_values, partition_of
from app.queries.tally import (
    Aggregate,
    AllOf,
    AnyOf,
    ByEdges,
    ByValues,
    Compare,
    Condition,
    CountPresent,
    CountRows,
    CountWhere,
    Grouping,
    IsMissing,
    Negation,
    OneOf,
    Persons,
    PersonTotal,
    Product,
    SumSteps,
    Tally,
)


@dataclass(frozen=True, slots=True)
class ChargedCells:
    """Cells that a query is charged to, or None for the whole dataset; `why` is text for people."""

    cells: tuple[int, ...] | None
    why: str


def cell_labels(card: Card) -> list[Any]:
    """Label of each cell, in order; the last, None, is the cell of missing values."""
    if card.cells is None:
        return []
    column, edges = card.cells.column, card.cells.edges
    declared = cell_column(card)
    if isinstance(declared, EpochColumn):
        return [*range(declared.low, declared.high + 1), None]
    by: Grouping = (
        ByValues(column, declared_values(declared)) if edges is None else ByEdges(column, edges)
    )
    return [*by.labels(), None]


def cells_to_charge(tally: Tally, card: Card, epochs: int | None = None) -> ChargedCells:
    """The cells whose rows alone can change the tally, where that makes it cost less.

    `epochs`: the tally is answered once, from rows of that many epochs. Later epochs pay
    nothing."""
    if card.cells is None:
        return ChargedCells(None, "no cells are declared")
    if card.person.rows_max > 1 and not card.cells.one_per_person:
        return ChargedCells(None, "a person may be in several cells")
    column, partition = card.cells.column, partition_of(card)
    touched = reach(_what_counts(tally, column), column, partition).possible
    arrived = partition.every
    if epochs is not None and isinstance(card.column(column), EpochColumn):
        arrived = (1 << epochs) - 1
    touched &= arrived
    why = ""
    if touched == 0:
        # Its answer is pure noise and reveals nothing; but no answer is free.
        touched = arrived & ~partition.empty
        why = "the filter leaves no cell possible, so it is charged as about all"
    if touched == partition.every & ~partition.empty:
        return ChargedCells(None, why or "the filter leaves every cell possible")
    cells = tuple(i for i in range(partition.size) if touched >> i & 1)
    if card.neighbours == "replace_one" and len(cells) > 1:
        why = "under replace_one a question about several cells costs as one about all"
        return ChargedCells(None, why)
    if why:
        return ChargedCells(cells, f"{why} that have arrived")
    return ChargedCells(cells, f"only rows in {len(cells)} of {partition.size} cells can count")


def _what_counts(tally: Tally, column: str) -> Condition:
    """Condition that a row must meet to change the tally."""
    parts: list[Condition] = [] if tally.where is None else [tally.where]
    for grouping in tally.groups:
        if isinstance(grouping, ByEdges):
            parts.append(Compare(grouping.column, ">=", grouping.edges[0]))
            parts.append(Compare(grouping.column, "<=", grouping.edges[-1]))
        else:
            listed: list[Condition] = [OneOf(grouping.column, grouping.values)]
            if grouping.missing:
                listed.append(IsMissing(grouping.column))
            parts.append(AnyOf(tuple(listed)))
    if tally.split is not None and 0 not in tally.split.signatures:
        parts.append(AnyOf(tally.split.conditions))
    met = [one.condition for one in tally.aggregates if isinstance(one, CountWhere)]
    if len(met) == len(tally.aggregates):
        parts.append(AnyOf(tuple(met)))
    if all(_adds_of(one, column) for one in tally.aggregates):
        parts.append(Negation(IsMissing(column)))
    return AllOf(tuple(parts))


def _adds_of(aggregate: Aggregate, column: str) -> bool:
    """True if a row adds nothing to the aggregate when the column is missing."""
    match aggregate:
        case CountPresent() | SumSteps() | Persons() | PersonTotal():
            return aggregate.column == column
        case Product():
            return any(factor.column == column for factor in aggregate.factors)
        case CountRows() | CountWhere():
            return False
