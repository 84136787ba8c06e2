"""Result of an accountant: a bound that is never too small, or the reason for having none."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from app.accounting.precise import CONTEXT, GUARD

_SHOWN_MAX = Decimal("1e300")
_PLACES = 12
_UP = Context(prec=CONTEXT.prec, rounding=ROUND_CEILING, Emax=CONTEXT.Emax, Emin=CONTEXT.Emin)
_SHORT = Context(prec=_PLACES, rounding=ROUND_CEILING, Emax=CONTEXT.Emax, Emin=CONTEXT.Emin)
EXACT = Context(prec=120)  # sums and products of the request's numbers lose no digit


class DoesNotApply(Exception):
    """Raised when an accountant has no sound bound; the text is the reason, shown to people."""


@dataclass(frozen=True, slots=True)
class Bound:
    """An epsilon or a delta, either `exact` or within 1e-20.

    `delta` is the delta it needs, if that is not the requested one. `extras` are further members
    of the reply, and `notes` name effects that the bound ignores."""

    value: Decimal
    exact: bool = False
    delta: Decimal | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def epsilon_number(value: Decimal, *, exact: bool = False) -> float:
    """The epsilon as a JSON number: rounded up in the twelfth decimal."""
    if not value < _SHOWN_MAX:
        raise DoesNotApply("the bound is too large to be shown")
    if not exact:
        value = _UP.add(value, _UP.multiply(GUARD, max(Decimal(1), value)))
    if value.adjusted() + _PLACES < _UP.prec - 1:
        value = value.quantize(Decimal(1).scaleb(-_PLACES), context=_UP)
    return _not_below(value)


def delta_number(value: Decimal, *, exact: bool = False) -> float:
    """The delta as a JSON number: rounded up in the twelfth significant digit, at most 1."""
    if not exact:
        value = _SHORT.plus(_UP.multiply(value, 1 + GUARD))
    return min(1.0, _not_below(value))


def _not_below(value: Decimal) -> float:
    number = float(value)
    return number if Decimal(repr(number)) >= value else math.nextafter(number, math.inf)
