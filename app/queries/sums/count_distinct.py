"""Number of persons with a row that meets the filter.

A person counts once in each group, with any number of rows there. Where each person has one row
this is a count of rows. Missing values: only the filter decides, and a person without a remaining
row is not counted. Rows whose person is missing are in no dataset.
"""

from typing import Literal

from app.data.card import Card, ColumnPerson
from app.errors import Invalid
from app.queries.estimates import Estimate, NoisySteps, figure
from app.queries.filters import POINTER
from app.queries.shapes.sums import SumShape
from app.queries.sums.persons import PersonSelection, person_measure
from app.queries.tally import CountRows, Persons


class CountDistinct(PersonSelection):
    """`{"kind": "count_distinct", "where": ..., "group_by": [...], "groups_max": ...}`"""

    kind: Literal["count_distinct"]
    column: str | None = None  # the card's person column, for analysts who prefer to name it

    def shape(self, card: Card) -> SumShape:
        person = card.person
        named = person.column if isinstance(person, ColumnPerson) else None
        if self.column is not None and self.column != named:
            rule = "must be the dataset's person column, or absent: only persons are counted"
            raise Invalid.field(f"{POINTER}/column", rule)
        groups = self.resolved_groups(card)
        kept = self.groups_of_one(card, groups)
        tally = self.person_tally(card, groups, Persons())
        if person.rows_max == 1:
            tally = self.tally(card, groups, CountRows())
        counted = person_measure(
            card, "persons", low=1, high=1, kept=kept, grouped=bool(groups), grid_exponent=0
        )
        return SumShape(tally=tally, measures=(counted,))

    def figures(self, noisy: tuple[tuple[NoisySteps, ...], ...], card: Card) -> list[Estimate]:
        return [figure(each, 0) for each in noisy[0]]
