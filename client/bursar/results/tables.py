"""Results as tables: lists of rows, pandas, polars and Arrow."""

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bursar.errors import MissingPackage

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

Row = dict[str, Any]


class Table(ABC):
    """A result with rows. `pl.DataFrame(result)` and `pa.table(result)` work as well."""

    @abstractmethod
    def rows(self) -> list[Row]:
        """The rows, all with the same columns."""

    def to_pandas(self) -> "pandas.DataFrame":
        try:
            import pandas
        except ImportError:
            raise _missing("pandas") from None
        rows = self.rows()
        return pandas.DataFrame(rows, columns=columns_of(rows))

    def to_polars(self) -> "polars.DataFrame":
        try:
            import polars
        except ImportError:
            raise _missing("polars") from None
        return polars.DataFrame(columnar(self.rows()), strict=False)

    def to_arrow(self) -> "pyarrow.Table":
        try:
            import pyarrow
        except ImportError:
            raise _missing("pyarrow") from None
        return pyarrow.table(columnar(self.rows()))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_csv(self) -> str:
        """The rows as CSV, with a header."""
        rows = self.rows()
        text = io.StringIO()
        writer = csv.DictWriter(text, columns_of(rows), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()


def _missing(package: str) -> MissingPackage:
    return MissingPackage(
        f"{package} is not installed.",
        hint=f"Type: pip install {package}, or pip install bursar[frames]",
    )


def columns_of(rows: Sequence[Row]) -> list[str]:
    """The columns in the order in which they appear."""
    return list(dict.fromkeys(name for row in rows for name in row))


def columnar(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """The rows by columns. A column of whole and broken numbers has only broken ones."""
    return {name: _one_type([row.get(name) for row in rows]) for name in columns_of(rows)}


def _one_type(values: list[Any]) -> list[Any]:
    kinds = {type(value) for value in values} - {type(None)}
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in values]
    if len(kinds) > 1:
        return [None if value is None else str(value) for value in values]
    return values


def rows_of(value: Any, interval: Mapping[str, Any] | None) -> list[Row]:
    """The value of an answer as rows. Groups and intervals become columns of their own."""
    if isinstance(value, Mapping) and isinstance(value.get("coefficients"), list):
        return [_flat(member) for member in value["coefficients"]]
    if isinstance(value, list):
        return [_row(member, rank) for rank, member in enumerate(value, start=1)]
    row = _flat(value) if isinstance(value, Mapping) else {"value": value}
    return [{**row, **_ends(interval)}]


def _row(member: Any, rank: int) -> Row:
    return _flat(member) if isinstance(member, Mapping) else {"rank": rank, "value": member}


def _flat(member: Mapping[str, Any], prefix: str = "") -> Row:
    row: Row = {}
    for name, value in member.items():
        if name == "group" and isinstance(value, Mapping):
            row |= _flat(value)
        elif name == "interval":
            row |= {f"{prefix}{end}": number for end, number in _ends(value).items()}
        elif name == "values" and isinstance(value, list):
            for one in value:
                row |= _flat(_without(one, "kind", "column"), f"{_aggregate_name(one)}_")
        elif isinstance(value, Mapping):
            row |= _flat(value, f"{prefix}{name}_")
        else:
            row[_column_name(prefix, name)] = value
    return row


def _column_name(prefix: str, name: str) -> str:
    """`mean_income` rather than `mean_income_value`."""
    return prefix.rstrip("_") if prefix and name == "value" else f"{prefix}{name}"


def _aggregate_name(one: Mapping[str, Any]) -> str:
    return "_".join(str(one[name]) for name in ("kind", "column") if one.get(name))


def _without(members: Mapping[str, Any], *names: str) -> Row:
    return {name: value for name, value in members.items() if name not in names}


def _ends(interval: Mapping[str, Any] | None) -> Row:
    return {} if interval is None else {"low": interval["low"], "high": interval["high"]}
