"""The public card of a dataset: what is declared about it, never a value from the data."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bursar.ask.nearest import did_you_mean
from bursar.errors import BadQuestion

VALUES_SHOWN = 6


@dataclass(frozen=True)
class ColumnCard:
    """A column as the card declares it."""

    name: str
    type: str
    description: str
    values: tuple[str, ...] = ()  # of a category
    low: Any = None
    high: Any = None

    @property
    def range(self) -> str:
        """The possible values, for people."""
        if self.values:
            more = len(self.values) - VALUES_SHOWN
            return ", ".join(self.values[:VALUES_SHOWN]) + (
                f", and {more} more" if more > 0 else ""
            )
        if self.type == "boolean":
            return "true, false"
        return "" if self.low is None else f"{self.low} to {self.high}"


@dataclass(frozen=True)
class Card:
    """The card of a dataset."""

    name: str
    description: str
    columns: tuple[ColumnCard, ...]
    members: Mapping[str, Any]  # everything that the server sent

    @classmethod
    def read(cls, members: Mapping[str, Any]) -> "Card":
        columns = tuple(
            ColumnCard(
                column["name"],
                column["type"],
                column.get("description") or "",
                tuple(column.get("values") or ()),
                column.get("low"),
                column.get("high"),
            )
            for column in members["columns"]
        )
        return cls(members["name"], members.get("description") or "", columns, members)

    @property
    def person(self) -> str:
        """Who is protected, for people."""
        match self.members["person"]:
            case {"kind": "row"}:
                return "every row is a person"
            case {"kind": "column", "column": column, "rows_max": rows}:
                return f"a person is a value of {column}, with at most {rows} rows"
            case {"kind": "edge"}:
                return "every edge of the graph is protected"
        return str(self.members["person"])

    @property
    def replace_one(self) -> bool:
        """True if neighbouring tables differ by a row that is replaced, not added or removed."""
        return self.members.get("neighbours") == "replace_one"

    @property
    def cells(self) -> str | None:
        """The column by which persons are divided into cells, each with a budget of its own."""
        cells = self.members.get("cells")
        return None if cells is None else str(cells["column"])

    def column(self, name: str) -> ColumnCard:
        self.check([name])
        return next(column for column in self.columns if column.name == name)

    def check(self, names: Iterable[str]) -> None:
        """Refuse names that the card does not declare."""
        known = [column.name for column in self.columns]
        for name in names:
            if name not in known:
                near = did_you_mean(name, known)
                raise BadQuestion(
                    f"{self.name} has no column '{name}'{near or '.'}",
                    hint="" if near else f"Its columns are {', '.join(known)}.",
                )
