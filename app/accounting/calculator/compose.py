"""The calculator: the answer of every requested accountant for one composition."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any

from app.accounting.calculator import (
    advanced,
    basic,
    concentrated,
    distribution,
    gdp,
    optimal,
    renyi,
)
from app.accounting.calculator.event_list import Composition
from app.accounting.calculator.figures import (
    Bound,
    DoesNotApply,
    delta_number,
    epsilon_number,
)
from app.accounting.precise import CONTEXT

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Accountant:
    """An accountant's theorem, and its bound in each direction."""

    theorem: str
    epsilon_at: Callable[[Composition, Decimal], Bound]
    delta_at: Callable[[Composition, Decimal], Bound]


ACCOUNTANTS: dict[str, Accountant] = {
    name: Accountant(room.THEOREM, room.epsilon_at, room.delta_at)
    for name, room in (
        ("basic", basic),
        ("advanced", advanced),
        ("optimal", optimal),
        ("zcdp", concentrated),
        ("renyi", renyi),
        ("gdp", gdp),
        ("pld", distribution),
    )
}


def compose(
    composition: Composition,
    accountants: Iterable[str],
    *,
    delta: Decimal | None = None,
    epsilon: Decimal | None = None,
) -> Json:
    """The epsilon at a requested delta, or the delta at a requested epsilon, by each accountant."""
    if (delta is None) == (epsilon is None):
        raise ValueError("exactly one of delta and epsilon is required")
    with localcontext(CONTEXT):
        results = {
            name: _result(ACCOUNTANTS[name], composition, delta, epsilon) for name in accountants
        }
        return {
            "results": results,
            "best": _best(results, "epsilon" if epsilon is None else "delta"),
            "curve": curve(composition),
        }


def _result(
    accountant: Accountant,
    composition: Composition,
    delta: Decimal | None,
    epsilon: Decimal | None,
) -> Json:
    try:
        if delta is not None:
            bound = accountant.epsilon_at(composition, delta)
            needed = delta if bound.delta is None else bound.delta
            shown = {
                "epsilon": epsilon_number(bound.value, exact=bound.exact),
                "delta": delta_number(needed, exact=True),
            }
        else:
            assert epsilon is not None
            bound = accountant.delta_at(composition, epsilon)
            shown = {
                "epsilon": epsilon_number(epsilon, exact=True),
                "delta": delta_number(bound.value, exact=bound.exact),
            }
    except DoesNotApply as reason:
        return {"unavailable": str(reason)}
    notes = {"notes": list(bound.notes)} if bound.notes else {}
    return {**shown, **bound.extras, "theorem": accountant.theorem, **notes}


def _best(results: dict[str, Json], member: str) -> str | None:
    """The accountant with the least bound; all bounds hold, so the least one does."""
    bounds = [(result[member], name) for name, result in results.items() if member in result]
    return min(bounds, key=lambda named: named[0])[1] if bounds else None


def curve(composition: Composition) -> Json:
    """The composed Renyi curve at the requested orders; it holds except with probability
    `delta`."""
    if not composition.affords_curve_at(len(composition.orders)):
        return {"unavailable": "too many different events: request fewer orders"}
    try:
        shown = [epsilon_number(composition.renyi(order)) for order in composition.orders]
    except DoesNotApply as reason:
        return {"unavailable": str(reason)}
    orders = [float(order) for order in composition.orders]
    return {
        "orders": orders,
        "epsilon": shown,
        "delta": delta_number(
            composition.failure, exact=composition.failure == composition.failure_sum
        ),
    }
