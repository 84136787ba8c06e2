"""A table of a source: rows to select from, with names and types of their columns."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Double, FromClause, case, cast, column, func, null

from app.engines.sql.dialects import Dialect, IsNaN, constant

FAR = 10**16  # outside the bounds of every `number` column
DIGITS = 60  # decimals kept; smaller digits do not change a double that is not tiny


@dataclass(frozen=True, slots=True)
class Table:
    """Rows to select from, and their columns.

    `names`: declared names. `called`: names in SQL. `types`: DuckDB's names of the types.
    """

    dialect: Dialect
    rows: FromClause
    names: tuple[str, ...]
    types: tuple[str, ...]
    called: tuple[str, ...]

    def position(self, name: str) -> int | None:
        """Index of the column, if exactly one has this name."""
        return self.names.index(name) if self.names.count(name) == 1 else None

    def column(self, place: int) -> ColumnElement[Any]:
        return column(self.called[place])

    def double(self, place: int) -> ColumnElement[Any]:
        """A number as a double, clamped first where the conversion could fail."""
        raw = self.column(place)
        if self.dialect.name != "postgresql" or not self.types[place].startswith("DECIMAL"):
            return cast(raw, Double())
        near = case(
            (raw < constant(-FAR), constant(-FAR)),
            (raw > constant(FAR), constant(FAR)),
            else_=func.trunc(raw, constant(DIGITS)),
        )
        return cast(case((IsNaN(raw), null()), else_=near), Double())
