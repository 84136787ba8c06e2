"""Base class of queries about the values at ranks."""

from pydantic import BaseModel, ConfigDict

from app.data.card import Card
from app.queries.filters import POINTER, Filter, resolve
from app.queries.shapes.ranks.rank import RankRule
from app.queries.shapes.ranks.shape import RankShape, Statistic, order_shape


class OrderQuery(BaseModel):
    """A column and the selected rows."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    column: str
    where: Filter | None = None

    def order_shape(
        self,
        card: Card,
        statistic: Statistic,
        ranks: tuple[RankRule, ...],
        missing: int | float | None,
    ) -> RankShape:
        where = resolve(self.where, card, f"{POINTER}/where")
        return order_shape(card, self.column, where, statistic, ranks, missing)
