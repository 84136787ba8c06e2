"""Spend of an account: on everybody, and in addition on some of the declared cells.

Theorem: McSherry 2009, parallel composition: a person is in exactly one cell, so a query about some
cells costs only the persons in them. With adaptively chosen queries the stop rule must hold for
each cell's own total: its own queries and those about everybody. Under `replace_one` a person may
leave one cell and enter another (`persons_may_move`; in the ledger it is `pairs`). Then the two
largest cells add up, number by number, which bounds every pair.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from app.accounting.rules.spending import Spend, largest, minus, plus, smallest, two_largest

CellIndices = tuple[int, ...] | None  # the cells that a query is about; None means everybody
PARALLEL = "McSherry 2009: parallel composition over the declared cells"
NO_CELLS: Mapping[int, Spend] = MappingProxyType({})


class Balance(NamedTuple):
    common: Spend
    persons_may_move: bool = False
    cells: Mapping[int, Spend] = NO_CELLS

    def charged(self, cost: Spend, cells: CellIndices) -> "Balance":
        if cells is None:
            return Balance(plus(self.common, cost), self.persons_may_move, self.cells)
        nothing = (0,) * len(cost)
        touched = {cell: plus(self.cells.get(cell, nothing), cost) for cell in cells}
        return Balance(self.common, self.persons_may_move, {**self.cells, **touched})

    def given_back(self, cost: Spend, cells: CellIndices) -> "Balance":
        if cells is None:
            return Balance(minus(self.common, cost), self.persons_may_move, self.cells)
        touched = {cell: minus(self.cells[cell], cost) for cell in cells}
        return Balance(self.common, self.persons_may_move, {**self.cells, **touched})

    def totals(self, cells: CellIndices = None) -> list[Spend]:
        """Totals that the stop rule must admit after a spend on these cells, or on any if None."""
        if not self.cells:
            return [self.common]
        if self.persons_may_move:
            return [plus(self.common, two_largest(list(self.cells.values())))]
        return [self.cell(cell) for cell in (self.cells if cells is None else cells)]

    def deciding_totals(self) -> list[Spend]:
        """Totals shown for the cells, and the total that the stop rule decides on.

        If persons stay in their cell, a cell that was never charged is below all others and is
        left out."""
        if not self.cells:
            return [self.common]
        totals = self.totals()
        if self.persons_may_move:
            totals += self._cells_with_others()
        return list(dict.fromkeys(totals))

    def floor(self, totals: list[Spend]) -> Spend:
        """Lower bound, number by number, of all totals of `deciding_totals`, which are `totals`."""
        if self.persons_may_move and self.cells:
            return plus(self.common, largest(self.cells.values()))
        return smallest(totals)

    def _cells_with_others(self) -> list[Spend]:
        """`cell` for every charged cell and for one that was never charged, in linear time."""
        spends = list(self.cells.values())
        first = largest(spends)
        second = tuple(sorted((0, *units))[-2] for units in zip(*spends, strict=True))
        totals = [plus(self.common, first)]
        for spend in dict.fromkeys(spends):
            numbers = zip(spend, first, second, strict=True)
            other = tuple(after if own == most else most for own, most, after in numbers)
            totals.append(plus(plus(self.common, spend), other))
        return totals

    @property
    def untouched(self) -> bool:
        return not any(map(any, (self.common, *self.cells.values())))

    def room(self, cells: CellIndices) -> list[Spend]:
        """Totals to which a cost on these cells would be added."""
        if cells is None:
            return self.totals()
        return [self.cell(cell) for cell in cells]

    def cell(self, cell: int) -> Spend:
        """Largest possible loss of the persons in this cell, who may have moved from another."""
        extra = self.cells.get(cell)
        total = self.common if extra is None else plus(self.common, extra)
        if not self.persons_may_move:
            return total
        others = [spend for other, spend in self.cells.items() if other != cell]
        return plus(total, largest(others)) if others else total
