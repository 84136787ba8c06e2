"""Sum of a column, its values clamped to the card's bounds.

Missing values (NULL, NaN, text that is no number) add nothing; infinities are clamped like any
value. An empty selection sums to zero. Values are added as integer steps of the column's grid.

With `per_person` each person's own total over their rows in the group is clamped, to bounds in the
query. A person of many rows then moves the sum by no more than those bounds (`persons.py`). A
person without a value adds nothing.
"""

from typing import Literal

from app.data.card import Card
from app.errors import Invalid
from app.queries.estimates import Estimate, NoisySteps, figure
from app.queries.filters import POINTER
from app.queries.shapes.measures import row_measure
from app.queries.shapes.sums import SumShape, numeric
from app.queries.sums.persons import NEEDS_PERSONS, PerPerson, PersonSelection, person_measure
from app.queries.tally import PersonTotal, SumSteps


class Sum(PersonSelection):
    """`{"kind": "sum", "column": ..., "where": ..., "group_by": [...], "per_person": {"low",
    "high"}, "groups_max": ...}`"""

    kind: Literal["sum"]
    column: str
    per_person: PerPerson = None

    def shape(self, card: Card) -> SumShape:
        column = numeric(card, self.column)
        groups = self.resolved_groups(card)
        if self.per_person is not None:
            low, high = self.per_person.steps(column)
            added = person_measure(
                card,
                "sum",
                low=low,
                high=high,
                kept=self.groups_of_one(card, groups),
                grouped=bool(groups),
                grid_exponent=column.grid_exponent,
            )
            total = PersonTotal(column.name, low, high)
            return SumShape(tally=self.person_tally(card, groups, total), measures=(added,))
        if self.groups_max is not None:
            raise Invalid.field(f"{POINTER}/groups_max", NEEDS_PERSONS)
        low, high = column.steps
        added = row_measure(
            card,
            "sum",
            low=low,
            high=high,
            grouped=bool(groups),
            grid_exponent=column.grid_exponent,
        )
        return SumShape(tally=self.tally(card, groups, SumSteps(column.name)), measures=(added,))

    def figures(self, noisy: tuple[tuple[NoisySteps, ...], ...], card: Card) -> list[Estimate]:
        exponent = numeric(card, self.column).grid_exponent
        return [figure(each, exponent) for each in noisy[0]]
