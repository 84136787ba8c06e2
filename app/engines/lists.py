"""Lists of values as one bound parameter, however long they are."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import bindparam, cast, func
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.types import UserDefinedType
from typing_extensions import override


class ListOf(UserDefinedType[list[Any]]):
    """A list bound as one parameter."""

    cache_ok = True

    def __init__(self, item: str) -> None:
        self.item = item

    @override
    def get_col_spec(self, **_: Any) -> str:
        return f"{self.item}[]"


def items(values: Sequence[Any], item: str) -> ColumnElement[Any]:
    """The values as rows, bound as one parameter."""
    items = bindparam(None, list(values), type_=ListOf(item), unique=True)
    return func.unnest(cast(items, items.type))
