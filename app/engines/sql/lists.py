"""Lists of values as one bound parameter of any length."""

from collections.abc import Sequence
from typing import Any, Literal

from sqlalchemy import (
    BigInteger,
    BindParameter,
    Boolean,
    ColumnElement,
    Date,
    Double,
    Integer,
    String,
    Subquery,
    bindparam,
    cast,
    column,
    text,
)
from sqlalchemy.types import TypeEngine, UserDefinedType
from typing_extensions import override

from app.engines.sql.dialects import Dialect

Kind = Literal["whole", "double", "text", "boolean", "day"]
TYPES: dict[Kind, TypeEngine[Any]] = {
    "whole": BigInteger(),
    "double": Double(),
    "text": String(),
    "boolean": Boolean(),
    "day": Date(),
}


def kind_of(stored: TypeEngine[Any]) -> Kind:
    """The kind of values stored as this type."""
    if isinstance(stored, Integer):  # and BigInteger
        return "whole"
    return next(kind for kind, each in TYPES.items() if isinstance(stored, type(each)))


def listed(dialect: Dialect, name: str, **columns: tuple[Kind, Sequence[Any]]) -> Subquery:
    """A relation of these columns, with a row for each item; every list is one parameter."""
    kinds = [column(key, TYPES[kind]) for key, (kind, _) in columns.items()]
    bound = {f"{name}_{key}": list(values) for key, (_, values) in columns.items()}
    lists = {
        key: f"CAST(:{name}_{key} AS {_list_type(dialect, kind)})"
        for key, (kind, _) in columns.items()
    }
    if dialect.name == "spark":
        made = f"SELECT inline(arrays_zip({', '.join(lists.values())})) AS ({', '.join(lists)})"
    else:
        made = "SELECT " + ", ".join(f"unnest({each}) AS {key}" for key, each in lists.items())
    parameters: list[BindParameter[Any]] = [
        bindparam(key, values, unique=True) for key, values in bound.items()
    ]
    return text(made).bindparams(*parameters).columns(*kinds).subquery(name)


def among(dialect: Dialect, name: str, kind: Kind, values: Sequence[Any]) -> ColumnElement[Any]:
    """The values as one list, which is one parameter."""
    bound: BindParameter[Any] = bindparam(name, list(values), unique=True)
    return cast(bound, ListOf(_list_type(dialect, kind)))


class ListOf(UserDefinedType[list[Any]]):
    """A list type, spelled in its dialect."""

    cache_ok = True

    def __init__(self, spelled: str) -> None:
        self.spelled = spelled

    @override
    def get_col_spec(self, **_: Any) -> str:
        return self.spelled


def _list_type(dialect: Dialect, kind: Kind) -> str:
    item = dialect.type_compiler_instance.process(TYPES[kind])
    return f"ARRAY<{item}>" if dialect.name == "spark" else f"{item}[]"
