"""Questions about persons rather than rows: what one of them can move.

In each group that a person is in, their rows there become one number between `low` and `high`: 1
where persons are counted, or the person's own total, clamped. Elsewhere it is 0. A person is in at
most L groups: no more than there are, than rows of a person, or than `groups_max`, which the engine
sees to. So however many rows a person has, over all groups, with r = max(|low|, |high|) and
w = max(high, 0) - min(low, 0):

                             in the L1 norm                   in the L2 norm, squared
    add_remove               L numbers appear or vanish: L r  L r^2
    replace_one, no groups   one number moves: w              w^2
    replace_one, groups      L numbers vanish and L others    of each pair, one vanishes and another
                             appear: 2 L r, and one that      appears, or one moves:
                             stays moves by w <= 2 r          L max(2 r^2, w^2)

What a person's rows become, and which of their groups are kept, is decided by these rows alone; a
replaced person is any other person, of as many or fewer rows or other ones. Rows of two persons are
never taken for one person's (`engines/sql/layout.py`), whatever any hash does.

A mean is c + T / N, of T = sum of (number - c) and N = how many numbers, as in `mean.py` with a
number of a person in the place of a row; but numbers of one person are in different groups, so that
in L2 their squares add up to L times one, where m rows in one group would make m^2.

This is tested by brute force over all neighbours of small tables.
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

STEPS_MAX = 1 << 60  # a clamped total is a BIGINT wherever it is added up; noise stops far below
NEEDS_PERSONS = "left out, or beside per_person: as many rows of a person may be in one group"


def _bound(value: object) -> int | float:
    """One rule for both: pydantic would tell what is wrong with it as either."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value  # of any size: no float may hold it
    if not isinstance(value, float) or not math.isfinite(value):
        raise ValueError("a finite number")
    return value


Bound = Annotated[int | float, PlainValidator(_bound), WithJsonSchema({"type": "number"})]


class PersonBounds(BaseModel):
    """What one person has at least and at most."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    low: Bound
    high: Bound

    def steps(self, column: IntegerColumn | NumberColumn) -> tuple[int, int]:
        """In whole steps of the column's grid, rounded down. Raises Invalid."""
        at = f"{POINTER}/per_person"
        low, high = (self._steps(name, column) for name in ("low", "high"))
        if low >= high:
            raise Invalid.field(
                f"{at}/high", "more than low, by a step of the column's grid at least"
            )
        return low, high

    def _steps(self, name: str, column: IntegerColumn | NumberColumn) -> int:
        at, value = f"{POINTER}/per_person/{name}", Fraction(getattr(self, name))
        if isinstance(column, IntegerColumn) and value.denominator != 1:
            raise Invalid.field(at, "a whole number: the column is one of whole numbers")
        steps = math.floor(value * Fraction(2) ** column.grid_exponent)
        if abs(steps) > STEPS_MAX:
            raise Invalid.field(at, "within 2^60 steps of the column's grid")
        return steps


def _unsaid(value: object) -> bool:
    """Left out of what a question is known again by, as before there was such a field."""
    return value is None


PerPerson = Annotated[PersonBounds | None, Field(exclude_if=_unsaid)]
GroupsMax = Annotated[int | None, Field(ge=1, le=100_000, exclude_if=_unsaid)]


class PersonSelection(Selection):
    """A selection of which each person may be kept to few groups."""

    groups_max: GroupsMax = None

    def groups_of_one(self, card: Card, groups: tuple[Grouping, ...]) -> int:
        """L"""
        possible = _possible(card, groups)
        if self.groups_max is None:
            return possible
        if not groups:
            raise Invalid.field(f"{POINTER}/groups_max", "left out: there is no group_by")
        return min(possible, self.groups_max)

    def person_tally(
        self, card: Card, groups: tuple[Grouping, ...], *aggregates: OfPersons
    ) -> Tally:
        tally, kept = self.tally(card, groups, *aggregates), self.groups_of_one(card, groups)
        return replace(tally, groups_max=kept) if kept < _possible(card, groups) else tally


def _possible(card: Card, groups: tuple[Grouping, ...]) -> int:
    """In so many groups a person may be, whatever is asked."""
    return min(card.person.rows_max, math.prod(grouping.count for grouping in groups))


def person_measure(
    card: Card, name: str, *, low: int, high: int, kept: int, grouped: bool, grid_exponent: int
) -> Measure:
    """One number of each person in each of `kept` groups."""
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
    """The centred sum of aggregate 0, of which there are aggregate 1."""
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
