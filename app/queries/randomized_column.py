"""Counts for each value of a category or boolean column, by randomised response of every row.

Each row reports one of K public outcomes by a public law that depends on its own value alone. The
reports are counted, and the counts of the values are estimated from them. This needs no trust in
the collector of the reports. Its error grows with the root of the number of rows; a `histogram` has
far less error.

It requires `replace_one`, where the number of rows is public. The reports show this number, so
under add_remove they would show exactly whether one more person is there. It requires one row per
person: each further row would cost epsilon again. There is no filter: the number of rows that meet
one is private under both relations. A missing value is an outcome of its own, or counts as a
declared one.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.data.card import Card
from app.data.columns import BooleanColumn, CategoryColumn
from app.errors import Invalid
from app.queries.filters import POINTER, declared
from app.queries.tally import ByValues, CountRows, Exact, Tally

ROWS_MAX = 10_000_000
GRID_OUTCOMES_MAX = 256


@dataclass(frozen=True, slots=True)
class RandomizedShape:
    """Outcomes and rows of a randomised column; its mechanism is prepared from them."""

    tally: Tally
    outcomes: tuple[Any, ...]
    rows: int
    missing_as: int  # index of the outcome that missing values count as
    grid: tuple[int, int] | None  # rows and columns of the outcomes' layout
    # other shapes of the same query; there are none
    alternatives: tuple["RandomizedShape", ...] = ()

    def counts(self, exact: Exact) -> list[int]:
        """Number of rows for each outcome."""
        *values, missing = exact[0]
        counts = [*values, *([0] * (len(self.outcomes) - len(values)))]
        counts[self.missing_as] += missing
        return counts


class CategoryGrid(BaseModel):
    """The card's categories, in order, as a table: near ones are reported more often."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    rows: Annotated[int, Field(ge=1)]
    columns: Annotated[int, Field(ge=1)]


class RandomizedColumn(BaseModel):
    """`{"kind": "randomized_column", "column": ..., "missing": ..., "grid": ...}`"""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: Literal["randomized_column"]
    column: str
    missing: str | bool | None = None
    grid: CategoryGrid | None = None

    def shape(self, card: Card) -> RandomizedShape:
        rows = _public_rows(card)
        column = declared(card, self.column, f"{POINTER}/column")
        if not isinstance(column, CategoryColumn | BooleanColumn):
            raise Invalid.field(f"{POINTER}/column", "must be a category or boolean column")
        values: tuple[Any, ...] = (
            column.values if isinstance(column, CategoryColumn) else (False, True)
        )
        outcomes, missing_as = (*values, None), len(values)
        if self.missing is not None:
            places = [i for i, value in enumerate(values) if value == self.missing]
            if not places:
                raise Invalid.field(
                    f"{POINTER}/missing", "must be a value that the column declares"
                )
            outcomes, missing_as = values, places[0]
        if len(outcomes) < 2:
            raise Invalid.field(f"{POINTER}/column", "must be a column with at least two outcomes")
        grid = self._layout(len(outcomes))
        tally = Tally(None, (ByValues(column.name, values, missing=True),), (CountRows(),))
        return RandomizedShape(tally, outcomes, rows, missing_as, grid)

    def _layout(self, outcomes: int) -> tuple[int, int] | None:
        if self.grid is None:
            return None
        if self.missing is None:
            raise Invalid.field(
                f"{POINTER}/missing", "required with a grid: the value that missing values count as"
            )
        if outcomes > GRID_OUTCOMES_MAX:
            raise Invalid.field(
                f"{POINTER}/grid", f"a grid may have at most {GRID_OUTCOMES_MAX} outcomes"
            )
        if self.grid.rows * self.grid.columns != outcomes:
            raise Invalid.field(
                f"{POINTER}/grid", "rows times columns must equal the number of outcomes"
            )
        return self.grid.rows, self.grid.columns


def _public_rows(card: Card) -> int:
    if card.neighbours != "replace_one" or card.rows is None:
        rule = "not allowed under add_remove: the reports would reveal the number of rows"
        raise Invalid.field(f"{POINTER}/kind", rule)
    if card.person.kind != "row":
        raise Invalid.field(f"{POINTER}/kind", "allowed only where each person has one row")
    if card.rows > ROWS_MAX:
        raise Invalid.field(f"{POINTER}/kind", f"allowed only for at most {ROWS_MAX} rows")
    return card.rows
