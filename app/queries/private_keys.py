"""Which texts of a column there are, without how many have them.

Told are texts that enough persons have, chosen at random so that nobody's own text shows; the texts
come sorted by their characters' code points. A row whose text is missing, or that the filter leaves
out, is not looked at. With persons of several rows, persons are counted, not rows.
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
