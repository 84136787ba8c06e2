"""Share of rows, or a sum over a sum: one query, one charge, an interval that holds.

Rows: A = rows of the selection that meet the numerator's filter, B = the others. The two are
disjoint, so the pair moves as a histogram of two bins does, and A / (A + B) is post-processing. It
grows with A and falls with B, so over the box of both intervals its extremes are in two corners.
Both counts are at least 0; an empty selection has ratio 0.

All rows, where each person has one row and one is replaced by another: A + B is the public number
of rows. A alone receives noise, half as much, and the ratio is A over that number. Its width is
that of the noise and can be promised. In all other cases the denominator is private and may be
small, and no half width below the bounds' own would hold for every table.

Sums: X and Y over the rows in which neither value is missing, each with half of the loss. A person
moves each by at most its own sensitivity, so the shares never cost more than 1. The ratio is a mean
of x/y weighted by y, hence within the bounds of x/y, if y has a low bound above zero. With a
denominator that may be zero no interval could hold, so that is refused.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import ldexp
from typing import Literal

from pydantic import BaseModel, ConfigDict

from app.data.card import Card
from app.data.columns import Column, IntegerColumn, NumberColumn
from app.errors import Invalid
from app.queries.estimates import Estimate, NoisySteps
from app.queries.filters import POINTER, Filter, declared, resolve
from app.queries.quotient_error import RowEstimate, ratio_estimate, share_estimate
from app.queries.shapes.measures import row_measure
from app.queries.shapes.sums import DEPENDS, Selection, SumShape
from app.queries.tally import AllOf, CountWhere, IsMissing, Negation, SumSteps, Tally

Numeric = IntegerColumn | NumberColumn
UNPROMISED = f"{DEPENDS}, by the denominator"


class Part(BaseModel):
    """The rows that meet a filter, or the sum of a column."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    where: Filter | None = None
    column: str | None = None


class Ratio(Selection):
    """`{"kind": "ratio", "numerator": {"where": ...}}`, or
    `{"kind": "ratio", "numerator": {"column": ...}, "denominator": {"column": ...}}`"""

    kind: Literal["ratio"]
    numerator: Part
    denominator: Part | None = None

    def shape(self, card: Card) -> SumShape:
        must_be_either(self.numerator, self.denominator, POINTER)
        return self._sums(card) if self.denominator is not None else self._rows(card)

    def figures(self, noisy: tuple[tuple[NoisySteps, ...], ...], card: Card) -> list[Estimate]:
        if self.denominator is None:
            rows = self._public_rows(card)
            if rows is not None:
                return [_of_rows(noisy[0][0], rows)]
            return [_share(*pair) for pair in zip(*noisy, strict=True)]
        quotient = _Quotient(*self._columns(card))
        return [quotient.figure(*pair) for pair in zip(*noisy, strict=True)]

    def _rows(self, card: Card) -> SumShape:
        met = resolve(self.numerator.where, card, f"{POINTER}/numerator/where")
        assert met is not None
        rows = self._public_rows(card)
        if rows is not None:
            counted = row_measure(card, "count", low=1, high=1, grouped=False, grid_exponent=0)
            return SumShape(self.tally(card, (), CountWhere(met)), (counted,), divisor=rows)
        groups = self.resolved_groups(card)
        counted = row_measure(card, "count", low=1, high=1, grouped=True, grid_exponent=0)
        return SumShape(
            self.tally(card, groups, CountWhere(met), CountWhere(Negation(met))),
            (replace(counted, more_vectors=(((1, 1),),)),),
            no_half_width_reason=UNPROMISED,
            estimate=share_estimate(0),
        )

    def _public_rows(self, card: Card) -> int | None:
        """Number of rows to divide by, if it is public."""
        whole = self.where is None and not self.group_by
        return card.rows if whole and card.person.kind == "row" else None

    def _sums(self, card: Card) -> SumShape:
        numerator, denominator = self._columns(card)
        groups = self.resolved_groups(card)
        measures = tuple(
            replace(
                row_measure(
                    card,
                    name,
                    low=column.steps[0],
                    high=column.steps[1],
                    grouped=bool(groups),
                    grid_exponent=column.grid_exponent,
                ),
                terms=((1, index),),
                share=Fraction(1, 2),
                single_cell=False,
            )
            for index, (name, column) in enumerate(
                (("numerator", numerator), ("denominator", denominator))
            )
        )
        where = resolve(self.where, card, f"{POINTER}/where")
        present = [Negation(IsMissing(column.name)) for column in (numerator, denominator)]
        both = AllOf(tuple(present if where is None else [where, *present]))
        tally = Tally(both, groups, (SumSteps(numerator.name), SumSteps(denominator.name)))
        return SumShape(
            tally,
            measures,
            no_half_width_reason=UNPROMISED,
            estimate=_Quotient(numerator, denominator).estimate(),
        )

    def _columns(self, card: Card) -> tuple[Numeric, Numeric]:
        assert self.denominator is not None
        return divided(self.numerator, self.denominator, card, POINTER)


def must_be_either(numerator: Part, denominator: Part | None, at: str) -> None:
    """Check for a filter's rows over all rows, or a sum over a sum. Raises Invalid with the
    field."""
    if (numerator.where is None) == (numerator.column is None):
        raise Invalid.field(f"{at}/numerator", "must have either a filter or a column to add up")
    if denominator is None:
        if numerator.column is not None:
            raise Invalid.field(
                f"{at}/denominator", "required: a sum is divided by a sum, {column}"
            )
    elif numerator.column is None:
        rule = "must be absent: a filter's rows are divided by all rows that `where` selects"
        raise Invalid.field(f"{at}/denominator", rule)
    elif denominator.column is None or denominator.where is not None:
        raise Invalid.field(f"{at}/denominator", "must have a column to add up, and no filter")


def divided(
    numerator_part: Part, denominator_part: Part, card: Card, at: str
) -> tuple[Numeric, Numeric]:
    """The two columns of a sum over a sum. Raises Invalid with the field."""
    numerator = _numeric(card, numerator_part, f"{at}/numerator/column")
    denominator = _numeric(card, denominator_part, f"{at}/denominator/column")
    if denominator.steps[0] < 1:
        rule = "must have a low bound above zero: otherwise the ratio has no bounds"
        raise Invalid.field(f"{at}/denominator/column", rule)
    return numerator, denominator


def _numeric(card: Card, part: Part, at: str) -> Numeric:
    assert part.column is not None
    column: Column = declared(card, part.column, at)
    if not isinstance(column, IntegerColumn | NumberColumn):
        raise Invalid.field(at, "must be an integer or number column")
    return column


def _of_rows(met: NoisySteps, rows: int) -> Estimate:
    value, low, high = (min(max(each, 0), rows) / rows for each in (met.steps, met.low, met.high))
    return Estimate(value, low, high)


def _share(met: NoisySteps, others: NoisySteps) -> Estimate:
    def share(a: int, b: int) -> float:
        a, b = max(a, 0), max(b, 0)
        return a / max(a + b, 1)

    return Estimate(
        share(met.steps, others.steps), share(met.low, others.high), share(met.high, others.low)
    )


class _Quotient:
    """One sum over another, within the bounds of one value over another."""

    def __init__(self, numerator: Numeric, denominator: Numeric) -> None:
        self._unit = Fraction(2) ** (denominator.grid_exponent - numerator.grid_exponent)
        self._least_below = ldexp(denominator.steps[0], -denominator.grid_exponent)
        corners = [Fraction(x, y) for x, y in product(numerator.steps, denominator.steps)]
        self._low, self._high = min(corners), max(corners)

    def estimate(self) -> RowEstimate:
        low, high = (float(bound * self._unit) for bound in (self._low, self._high))
        return ratio_estimate(
            least_below=self._least_below, largest=max(abs(low), abs(high)), spread=high - low
        )

    def figure(self, numerator: NoisySteps, denominator: NoisySteps) -> Estimate:
        value = self._value(numerator.steps, denominator.steps)
        if denominator.low < 1:  # there may be no row at all: only the bounds are certain
            return Estimate(value, self._clamped(self._low), self._clamped(self._high))
        corners = [
            self._value(x, y)
            for x in (numerator.low, numerator.high)
            for y in (denominator.low, denominator.high)
        ]
        return Estimate(value, min(corners), max(corners))

    def _value(self, numerator: int, denominator: int) -> float:
        return self._clamped(Fraction(numerator, max(denominator, 1)))

    def _clamped(self, steps: Fraction) -> float:
        return float(min(max(steps, self._low), self._high) * self._unit)
