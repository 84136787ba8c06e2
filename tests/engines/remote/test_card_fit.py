"""A card that does not fit its source: the message names the column, and the nearest one."""

from dataclasses import dataclass

import pytest

from app.engines.card_fit import check_fit
from app.errors import FieldError, Invalid
from tests.engines.remote.tables import card_of


@dataclass(frozen=True)
class Source:
    names: tuple[str, ...]

    @property
    def types(self) -> tuple[str, ...]:
        return ("VARCHAR",) * len(self.names)

    def position(self, name: str) -> int | None:
        return self.names.index(name) if self.names.count(name) == 1 else None


@pytest.mark.parametrize(
    ("names", "rule"),
    [
        (("income", "age"), "the source has no column 'agee'; did you mean 'age'?"),
        (("agee", "agee"), "several columns of the source are called 'agee'"),
        # the first row of a file without names is not shown
        (("income", "17"), "the source has no column 'agee'"),
    ],
)
def test_an_absent_column_is_named_with_the_nearest_one(names: tuple[str, ...], rule: str) -> None:
    card = card_of({"name": "agee", "type": "integer", "low": 0, "high": 9})
    with pytest.raises(Invalid) as refused:
        check_fit(card, Source(names))
    assert refused.value.fields == (FieldError("/columns/0/name", rule),)
    assert refused.value.detail == f"The card does not fit the source: /columns/0/name: {rule}"
