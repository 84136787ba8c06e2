"""Number of rows in each public bin of one column.

Bins are a category's values, false and true, or the intervals between given edges. A row whose
value is missing or outside the edges is in no bin. Every bin is present, empty or not. The texts of
a text column are not public: its bins are those that contain enough rows.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, field_validator

from app.data.card import Card
from app.data.columns import BooleanColumn, CategoryColumn, TextColumn
from app.errors import Invalid
from app.queries.estimates import Estimate, NoisySteps, figure
from app.queries.filters import POINTER, Filter, declared, resolve
from app.queries.groups import EDGES_NEEDED, GROUPS_MAX, Edges, resolve_group
from app.queries.shapes.measures import row_measure
from app.queries.shapes.private_keys import PrivateKeysShape, keys_shape
from app.queries.shapes.sums import SumShape
from app.queries.tally import CountRows, Tally


class Histogram(BaseModel):
    """`{"kind": "histogram", "column": ..., "edges": [...], "where": ...}`"""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: Literal["histogram"]
    column: str
    edges: Edges | None = None
    where: Filter | None = None

    @field_validator("edges", mode="before")
    @classmethod
    def _list(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    def shape(self, card: Card) -> SumShape | PrivateKeysShape:
        column = declared(card, self.column, f"{POINTER}/column")
        where = resolve(self.where, card, f"{POINTER}/where")
        if isinstance(column, TextColumn):
            if self.edges is not None:
                raise Invalid.field(f"{POINTER}/edges", "a text column has no edges")
            return keys_shape(card, Tally(where, (), (CountRows(),)), column.name, counts=True)
        if self.edges is None and not isinstance(column, CategoryColumn | BooleanColumn):
            raise Invalid.field(f"{POINTER}/edges", EDGES_NEEDED)
        bins = resolve_group(self.column, self.edges, card, POINTER)
        if bins.count > GROUPS_MAX:
            raise Invalid.field(f"{POINTER}/edges", f"may make at most {GROUPS_MAX} bins")
        return SumShape(
            tally=Tally(where, (bins,), (CountRows(),)),
            measures=(row_measure(card, "count", low=1, high=1, grouped=True, grid_exponent=0),),
        )

    def figures(self, noisy: tuple[tuple[NoisySteps, ...], ...], card: Card) -> list[Estimate]:
        return [figure(each, 0) for each in noisy[0]]
