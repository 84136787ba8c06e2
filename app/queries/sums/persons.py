"""Queries about persons rather than rows: sensitivity to one person.

In each group that a person is in, their rows there become one number between `low` and `high`: 1
where persons are counted, or the person's own total, clamped. Elsewhere it is 0. A person is in at
most L groups: the least of the number of groups, the rows of a person, and `groups_max`, which the
engine enforces. So for any number of rows per person, over all groups, with r = max(|low|, |high|)
and w = max(high, 0) - min(low, 0):

                             in the L1 norm                   in the L2 norm, squared
    add_remove               L numbers appear or vanish: L r  L r^2
    replace_one, no groups   one number moves: w              w^2
    replace_one, groups      L numbers vanish and L others    of each pair, one vanishes and another
                             appear: 2 L r, and one that      appears, or one moves:
                             stays moves by w <= 2 r          L max(2 r^2, w^2)

A person's rows alone decide their number, and which of their groups are kept. A replaced person
becomes any other person, with any number of rows up to the limit. Rows of two persons are never
taken for one person's (`engines/sql/layout.py`), even if hashes collide.

A mean is c + T / N, of T = sum of (number - c) and N = the count of numbers, as in `mean.py` with a
person's number in place of a row. But numbers of one person are in different groups. So in L2 their
squares add up to L times one, where m rows in one group would make m^2.

Brute-force tests check this over all neighbours of small tables.
"""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema

from app.data.card import Card
from app.data.columns import IntegerColumn, NumberColumn
from app.errors import Invalid
from app.queries.filters import POINTER
from app.queries.shapes.measures import Measure
from app.queries.shapes.sums import Selection
from app.queries.tally import Grouping, OfPersons, Tally

STEPS_MAX = 1 << 60  # a clamped total fits a BIGINT in every sum; noise limits stop far below
NEEDS_PERSONS = "must be absent without per_person: all rows of a person may be in one group"


def _bound(value: object) -> int | float:
    """Validate a bound by one rule; pydantic would report an error for each type of a union."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value  # of any size: a float may not hold it
    if not isinstance(value, float) or not math.isfinite(value):
        raise ValueError("must be a finite number")
    return value


PersonBound = Annotated[int | float, PlainValidator(_bound), WithJsonSchema({"type": "number"})]


class PersonBounds(BaseModel):
    """Least and largest total of one person."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    low: PersonBound
    high: PersonBound

    def steps(self, column: IntegerColumn | NumberColumn) -> tuple[int, int]:
        """The bounds in integer steps of the column's grid, rounded down. Raises Invalid."""
        at = f"{POINTER}/per_person"
        low, high = (self._steps(name, column) for name in ("low", "high"))
        if low >= high:
            raise Invalid.field(
                f"{at}/high", "must be above low by at least one step of the column's grid"
            )
        return low, high

    def _steps(self, name: str, column: IntegerColumn | NumberColumn) -> int:
        at, value = f"{POINTER}/per_person/{name}", Fraction(getattr(self, name))
        if isinstance(column, IntegerColumn) and value.denominator != 1:
            raise Invalid.field(at, "must be a whole number, as in the column")
        steps = math.floor(value * Fraction(2) ** column.grid_exponent)
        if abs(steps) > STEPS_MAX:
            raise Invalid.field(at, "must be within 2^60 steps of the column's grid")
        return steps


def _unsaid(value: object) -> bool:
    """True for an unset field, which is left out of the query's canonical text as in older
    queries."""
    return value is None


PerPerson = Annotated[PersonBounds | None, Field(exclude_if=_unsaid)]
GroupsMax = Annotated[int | None, Field(ge=1, le=100_000, exclude_if=_unsaid)]


class PersonSelection(Selection):
    """A selection that may limit the number of groups per person."""

    groups_max: GroupsMax = None

    def groups_of_one(self, card: Card, groups: tuple[Grouping, ...]) -> int:
        """L: the largest number of groups of one person."""
        possible = _possible(card, groups)
        if self.groups_max is None:
            return possible
        if not groups:
            raise Invalid.field(f"{POINTER}/groups_max", "must be absent: there is no group_by")
        return min(possible, self.groups_max)

    def person_tally(
        self, card: Card, groups: tuple[Grouping, ...], *aggregates: OfPersons
    ) -> Tally:
        tally, kept = self.tally(card, groups, *aggregates), self.groups_of_one(card, groups)
        return replace(tally, groups_max=kept) if kept < _possible(card, groups) else tally


def _possible(card: Card, groups: tuple[Grouping, ...]) -> int:
    """Largest number of groups that a person may be in, without `groups_max`."""
    return min(card.person.rows_max, math.prod(grouping.count for grouping in groups))


def person_measure(
    card: Card, name: str, *, low: int, high: int, kept: int, grouped: bool, grid_exponent: int
) -> Measure:
    """Measure of one number per person in each of `kept` groups."""
    reach = max(abs(low), abs(high))
    width = max(high, 0) - min(low, 0)
    sensitivity, square = kept * reach, kept * reach**2
    in_one = kept == 1
    if card.neighbours == "replace_one":
        if grouped:
            sensitivity, square = 2 * sensitivity, kept * max(2 * reach**2, width**2)
            in_one = False
        else:
            sensitivity, square = width, width**2
    return Measure(name, ((1, 0),), sensitivity, Fraction(1), grid_exponent, square, in_one)


def person_mean_measures(
    card: Card, *, low: int, high: int, kept: int, grouped: bool, grid_exponent: int
) -> tuple[Measure, Measure]:
    """Measures of a mean: the centred sum of aggregate 0, and its count, aggregate 1."""
    centre = (low + high) // 2
    reach = max(high - centre, centre - low)
    numbers, square, count_square = kept, kept * reach**2, kept
    if card.neighbours == "replace_one":
        if grouped:
            numbers, square, count_square = 2 * numbers, 2 * square, 2 * count_square
        else:
            square = max(square, ((high - low) ** 2 + 1) // 2)
    half, terms = Fraction(1, 2), ((1, 0), (-centre, 1))
    return (
        Measure(
            "centred_sum",
            terms,
            numbers * reach,
            half,
            grid_exponent,
            sensitivity_l2_squared=square,
        ),
        Measure("count", ((1, 1),), numbers, half, 0, sensitivity_l2_squared=count_square),
    )
