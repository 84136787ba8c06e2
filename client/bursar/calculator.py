"""The calculator: losses of mechanisms together, without any dataset.

`b.compose([laplace(0.1, count=10), gaussian(2.0)], delta=1e-6)`
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bursar.ask.amounts import Amount, short, wire_amount
from bursar.http.flow import Call, Flow, send
from bursar.results.show import html
from bursar.results.tables import Row, Table, columns_of

Accountant = Literal["basic", "advanced", "optimal", "zcdp", "renyi", "gdp", "pld"]
Event = dict[str, Any]


def _event(mechanism: str, count: int | None, **fields: Any) -> Event:
    chosen = {name: value for name, value in fields.items() if value is not None}
    event = {"mechanism": mechanism, **chosen}
    return event if count is None else {**event, "count": count}


def laplace(epsilon: Amount, *, count: int = 1) -> Event:
    return _event("laplace", count, epsilon=wire_amount(epsilon))


def discrete_laplace(epsilon: Amount, *, sensitivity: int = 1, count: int = 1) -> Event:
    fields = {"epsilon": wire_amount(epsilon), "sensitivity": sensitivity}
    return _event("discrete_laplace", count, **fields)


def gaussian(
    noise_multiplier: Amount, *, sampling_rate: Amount | None = None, count: int = 1
) -> Event:
    rate = None if sampling_rate is None else wire_amount(sampling_rate)
    multiplier = wire_amount(noise_multiplier)
    return _event("gaussian", count, noise_multiplier=multiplier, sampling_rate=rate)


def discrete_gaussian(noise_multiplier: Amount, *, count: int = 1) -> Event:
    return _event("discrete_gaussian", count, noise_multiplier=wire_amount(noise_multiplier))


def randomized_response(epsilon: Amount, categories: int, *, count: int = 1) -> Event:
    fields = {"epsilon": wire_amount(epsilon), "categories": categories}
    return _event("randomized_response", count, **fields)


def exponential(epsilon: Amount, *, count: int = 1) -> Event:
    return _event("exponential", count, epsilon=wire_amount(epsilon))


def zcdp(rho: Amount, *, count: int = 1) -> Event:
    return _event("zcdp", count, rho=wire_amount(rho))


def generic(epsilon: Amount, delta: Amount, *, count: int = 1) -> Event:
    return _event("generic", count, epsilon=wire_amount(epsilon), delta=wire_amount(delta))


def target(mechanism: str, *, epsilon: Amount, delta: Amount, count: int, **more: Any) -> Event:
    """The loss of each event so that `count` of them keep a promise of (epsilon, delta)."""
    promise = {"epsilon": wire_amount(epsilon), "delta": wire_amount(delta)}
    return _event(mechanism, count, **promise, **more)


@dataclass(frozen=True, repr=False)
class Composition(Table):
    """The result of each accountant for the events. `best` has the least epsilon."""

    results: Mapping[str, Mapping[str, Any]]
    best: str | None
    members: Mapping[str, Any]

    def rows(self) -> list[Row]:
        names = ("epsilon", "delta", "theorem", "unavailable")
        return [
            {"accountant": accountant, **{name: result.get(name) for name in names}}
            for accountant, result in self.results.items()
        ]

    def __repr__(self) -> str:
        lines = [
            f"{name}: " + (result.get("unavailable") or f"ε {short(result.get('epsilon'))}")
            for name, result in self.results.items()
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = self.rows()
        return html.box(html.title("Composed loss"), html.table(rows, columns_of(rows)))


def compose_flow(
    events: Sequence[Event] | None,
    *,
    delta: Amount | None,
    epsilon: Amount | None,
    to_reach: Event | None,
    accountants: Sequence[Accountant] | None,
    orders: Sequence[Amount] | None,
    neighbours: Literal["add_remove", "replace_one"],
    group_size: int,
) -> Flow[Composition]:
    fields: dict[str, Any] = {
        "events": None if events is None else list(events),
        "delta": None if delta is None else wire_amount(delta),
        "epsilon": None if epsilon is None else wire_amount(epsilon),
        "target": to_reach,
        "accountants": None if accountants is None else list(accountants),
        "orders": None if orders is None else [wire_amount(order) for order in orders],
    }
    body = {name: value for name, value in fields.items() if value is not None}
    body |= {"neighbours": neighbours, "group_size": group_size}
    reply = yield from send(Call("POST", "/v1/accounting/compose", body, free=True))
    members = reply.json()
    return Composition(members["results"], members.get("best"), members)
