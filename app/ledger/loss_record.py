"""A loss as an entry records it: only the numbers that the charged accounts count.

An entry that charges only `pure` accounts needs no curve of forty numbers. A verifier knows each
account's currency from its grants.
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
    """Read a loss; raises ValueError, KeyError or TypeError if the record is no loss."""
    numbers = {name: body.get(name, INFINITE) for name in ("pure", "rho", "mu_squared")}
    numbers |= {"epsilon": body["epsilon"], "delta": body["delta"]}
    curve = body.get("curve", NO_CURVE)
    units_listed = [*numbers.values(), body.get("failure", 0), *curve]
    if not all(type(units) is int for units in units_listed):
        raise ValueError("units must be integers")
    return Loss(**numbers, failure=body.get("failure", 0), curve=tuple(curve))
