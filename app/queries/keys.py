"""Texts that occur in a column, without their counts. Keys here are texts, not secrets.

The answer holds texts that enough persons have, selected at random so that no single person's text
is revealed. Texts are sorted by their characters' code points. A row with a missing text, or
outside the filter, does not count. If a person may have several rows, persons are counted, not
rows.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from app.data.card import Card
from app.queries.filters import POINTER, Filter, resolve
from app.queries.groups import text_column
from app.queries.shapes.private_keys import PrivateKeysShape, keys_shape
from app.queries.tally import CountRows, Tally


class Keys(BaseModel):
    """`{"kind": "keys", "column": ..., "where": ...}`"""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: Literal["keys"]
    column: str
    where: Filter | None = None

    def shape(self, card: Card) -> PrivateKeysShape:
        column = text_column(card, self.column, f"{POINTER}/column")
        tally = Tally(resolve(self.where, card, f"{POINTER}/where"), (), (CountRows(),))
        return keys_shape(card, tally, column.name, counts=False)
