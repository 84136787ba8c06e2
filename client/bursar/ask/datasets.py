"""Datasets and filtered tables: where questions are built."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from bursar.ask import streams
from bursar.ask.cards import Card
from bursar.ask.filters import Condition
from bursar.ask.keywords import no_attribute
from bursar.ask.kinds import Kinds
from bursar.ask.question import QuestionParts, named_columns
from bursar.errors import BadQuestion
from bursar.results.budgets import BudgetFigures
from bursar.results.listings import columns_listing
from bursar.results.show import html
from bursar.results.show.budget import budget_html, budget_text

Q = TypeVar("Q", bound=QuestionParts)
Self = TypeVar("Self", bound="DatasetParts[Any]")
UNFILTERED = {"randomized_column"}  # every row answers


@dataclass(frozen=True, repr=False)
class DatasetParts(Kinds[Q], Generic[Q]):
    """The rows of a dataset that meet a filter; all of them without one."""

    card: Card
    empty: Q  # a question without a query, which knows its server
    condition: Condition | None = None
    shown_budget: BudgetFigures | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        return self.card.name

    @property
    def columns(self) -> list[str]:
        return [column.name for column in self.card.columns]

    def where(self: Self, *conditions: Condition) -> Self:
        """Only the rows that meet all conditions: `census.where(col.age >= 18)`."""
        joined = self.condition
        for condition in conditions:
            if not isinstance(condition, Condition):
                raise BadQuestion(
                    f"where() takes conditions, not a {type(condition).__name__}.",
                    hint="For example: where(col.age >= 18)",
                )
            self.card.check(sorted(condition.columns))
            joined = condition if joined is None else joined & condition
        return replace(self, condition=joined)

    def _make(self, kind: str, fields: dict[str, Any]) -> Q:
        query = {"kind": kind, **{k: v for k, v in fields.items() if v is not None}}
        self.card.check(named_columns(query))
        if self.condition is not None:
            if kind in UNFILTERED:
                raise BadQuestion(f"A {kind} is about all rows.", hint="Leave out where().")
            query["where"] = self.condition.body
        return replace(self.empty, card=self.card, query=query)

    def sql(self, text: str) -> Q:
        """A question in SQL about this dataset."""
        if self.condition is not None:
            raise BadQuestion("SQL has a filter of its own.", hint="Write WHERE in the text.")
        return replace(self.empty, card=self.card, query=None, sql=text)

    def _above_threshold(
        self, threshold: int, crossings: int, asks_max: int
    ) -> streams.StreamRequest:
        if self.condition is not None:
            raise BadQuestion("The filter belongs to each ask.", hint="stream.ask(col.age >= 18)")
        return streams.above_threshold(self.name, threshold, crossings, asks_max)

    def _running_count(self, epochs_max: int) -> streams.StreamRequest:
        return streams.running_count(self.name, epochs_max, self.condition)

    if not TYPE_CHECKING:  # so that type checkers know which methods there are

        def __getattr__(self, name: str) -> Any:
            raise no_attribute("A dataset", name, dir(type(self)))

    def __repr__(self) -> str:
        if self.condition is not None:
            return f"<{self.name} where {self.condition!r}>"
        lines = [repr(columns_listing(self.card)), self.card.person]
        if self.shown_budget is not None:
            lines.append(budget_text(self.shown_budget))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts = [columns_listing(self.card)._repr_html_(), html.quiet(self.card.person)]
        if self.condition is not None:
            parts.append(html.quiet(f"where {self.condition!r}"))
        if self.shown_budget is not None:
            parts.append(budget_html(self.shown_budget))
        return html.box(*parts)
