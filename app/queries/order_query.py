"""What questions about the values at ranks have in common."""

from pydantic import BaseModel, ConfigDict

from app.datasets import Card
from app.queries.filters import Filter, resolve
from app.queries.order_shape import OrderShape, Statistic, order_shape
from app.queries.ranks import RankRule
from app.queries.shape import AT


class OrderQuery(BaseModel):
    """A column and the rows it is asked about."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    column: str
    where: Filter | None = None

    def order_shape(
        self,
        card: Card,
        statistic: Statistic,
        ranks: tuple[RankRule, ...],
        missing: int | float | None,
    ) -> OrderShape:
        where = resolve(self.where, card, f"{AT}/where")
        return order_shape(card, self.column, where, statistic, ranks, missing)
