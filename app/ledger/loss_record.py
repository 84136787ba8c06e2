"""A loss as an entry tells it: what the charged accounts count, and no more.

An entry that charges only `pure` accounts has no use for a curve of forty numbers; whoever verifies
knows each account's currency from its grants.
"""

from collections.abc import Mapping
from typing import Any

from app.accounting.loss import NO_CURVE, Loss
from app.accounting.precise import INFINITE

COUNTED = {"zcdp": "rho", "gdp": "mu_squared", "renyi": "curve"}


def loss_record(loss: Loss, currencies: frozenset[str]) -> Mapping[str, int | tuple[int, ...]]:
    record: dict[str, Any] = {"epsilon": loss.epsilon, "delta": loss.delta}
    for currency in sorted(currencies & set(COUNTED)):
        record |= {"pure": loss.pure, "failure": loss.failure}
        record[COUNTED[currency]] = getattr(loss, COUNTED[currency])
    return record


def loss_from_record(body: Mapping[str, Any]) -> Loss:
    """Raises ValueError, KeyError or TypeError for what is no loss."""
    numbers = {name: body.get(name, INFINITE) for name in ("pure", "rho", "mu_squared")}
    numbers |= {"epsilon": body["epsilon"], "delta": body["delta"]}
    curve = body.get("curve", NO_CURVE)
    told = [*numbers.values(), body.get("failure", 0), *curve]
    if not all(type(units) is int for units in told):
        raise ValueError("units are whole numbers")
    return Loss(**numbers, failure=body.get("failure", 0), curve=tuple(curve))
