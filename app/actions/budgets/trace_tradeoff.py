"""The trade-off curve of what an account has spent: how well the best attack could do with it.

Exact where the releases are few enough to be looked at and simple enough to be known: one of them,
or all of one noise whose composition is known. Otherwise a bound from the account's totals.
"""

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from app.accounting.curves.orders import ORDERS
from app.accounting.precise import INFINITE
from app.accounting.rules.spending import Spend, largest, undominated
from app.accounting.tradeoff.curve import (
    GaussianTradeoff,
    LaplaceTradeoff,
    LeakyInputTradeoff,
    RandomizedResponseTradeoff,
    Single,
    Tradeoff,
    lowest,
    shown,
    tradeoff_of,
)
from app.accounting.tradeoff.exact import REPEATS_MAX, limited
from app.accounting.units import ATTO, PICO
from app.ledger.account import Account
from app.ports import History

ENTRIES_MAX = 10_000  # looked at, to find out whether the releases are simple
CHUNK = 1000
CURVES_MAX = 4  # of cells; a curve of 1001 points takes up to 0.4 s


@dataclass(slots=True)
class TraceTradeoff:
    history: History

    def __call__(self, account: Account, points: int) -> tuple[Tradeoff, Tradeoff]:
        """What was spent, and what was promised. Blocking: reads entries."""
        alphas = [i / (points - 1) for i in range(points)]
        terms = account.terms
        promised = limited(terms.epsilon / PICO, terms.delta / ATTO)
        promise = shown(promised, alphas, exact=False, theorem=account.rule.theorem)
        if account.untouched:
            spent = tradeoff_of(pure=Fraction(0), alphas=alphas)
        else:
            single, surely = self._simple(account)
            curves = [
                tradeoff_of(single=single, alphas=alphas, **_totals(account, total))
                for total in _traced(account)
            ]
            spent = lowest(curves)
            # Replacing somebody spreads the change over two groups: no attack does so well.
            spread = (
                account.balance.pairs and isinstance(single, LaplaceTradeoff) and single.steps != 1
            )
            if spread or not surely:
                spent = replace(spent, exact=False)
        return spent, promise

    def _simple(self, account: Account) -> tuple[Single | None, bool]:
        """All releases as one that is known, None if they are not or are too many; and whether all
        are about the same rows, so that one person is surely in all of them."""
        if account.balance.cells:
            return None, False
        releases: dict[str, Single | None] = {}
        plans: set[str] = set()
        after = 0
        while after < ENTRIES_MAX:
            entries = self.history.entries(
                book_id=account.book_id, after=(0, "", after), limit=CHUNK
            )
            for entry in entries:
                body: dict[str, Any] = json.loads(entry.text)["body"]
                if account.holder not in body.get("accounts", ()):
                    continue
                if entry.kind == "charge":
                    releases[body["charge"]] = _of_charge(body)
                    plans.add(body["plan"])
                elif entry.kind == "void":
                    releases.pop(body["charge"], None)
                elif entry.kind == "booked":
                    for place, event in enumerate(body["events"]):
                        releases[f"{entry.seq}/{place}"] = _of_event(event)
                        plans.add(f"{entry.seq}/{place}")
            if len(entries) < CHUNK:
                return _together(list(releases.values())), len(plans) == 1
            after = entries[-1].seq
        return None, False


def _of_charge(body: dict[str, Any]) -> Single | None:
    epsilon = Fraction(body["epsilon"], PICO)
    match body:
        case {"strategy": _} | {"moments": _}:  # many numbers may move at once
            return None
        case {"mechanism": "laplace", "noise": [{"sensitivity": str(moves), "share": "1"}]}:
            return LaplaceTradeoff(epsilon, steps=int(moves))
        case {"mechanism": "randomized_response", "outcomes": int(outcomes), "keep": str()}:
            return RandomizedResponseTradeoff(epsilon, outcomes)
        case _:
            return None


def _of_event(event: dict[str, Any]) -> Single | None:
    match event:
        case {"mechanism": "laplace", "epsilon": epsilon, "count": 1}:
            return LaplaceTradeoff(Fraction(epsilon))
        case {"mechanism": "gaussian", "noise_multiplier": multiplier, "count": int(count)}:
            return GaussianTradeoff(count / Fraction(multiplier) ** 2)
        case {"mechanism": "randomized_response", "epsilon": epsilon, "categories": 2, **more}:
            if more["count"] <= REPEATS_MAX:
                leak = Fraction(more.get("delta", 0))
                return RandomizedResponseTradeoff(
                    Fraction(epsilon), repeats=more["count"], delta=leak
                )
            return None
        case {"mechanism": "randomized_response", "categories": int(categories), "count": 1}:
            leak = Fraction(event.get("delta", 0))
            return RandomizedResponseTradeoff(Fraction(event["epsilon"]), categories, delta=leak)
        case {"mechanism": "leaky_input", "delta": delta, "count": int(count)}:
            return LeakyInputTradeoff(1 - (1 - Fraction(delta)) ** count)
        case _:
            return None


def _together(releases: list[Single | None]) -> Single | None:
    """Several releases as one: Gaussian ones add their mu^2, and whole-number Laplace noise on
    answers that move by one step is randomised response, so often repeated."""
    if len(releases) == 1:
        return releases[0]
    gaussian = [each for each in releases if isinstance(each, GaussianTradeoff)]
    if gaussian and len(gaussian) == len(releases):
        return GaussianTradeoff(sum((each.mu_squared for each in gaussian), Fraction(0)))
    first = releases[0] if releases else None
    same = all(each == first for each in releases)
    if (
        isinstance(first, LaplaceTradeoff)
        and first.steps == 1
        and same
        and len(releases) <= REPEATS_MAX
    ):
        return RandomizedResponseTradeoff(first.epsilon, repeats=len(releases))
    return None


def _traced(account: Account) -> list[Spend]:
    """The totals whose curves together lie at or below the curve of every cell.

    A larger total has a lower curve. Past `CURVES_MAX` curves one total stands for all of them.
    """
    totals = undominated(account.balance.standings())
    return totals if len(totals) <= CURVES_MAX else [largest(totals)]


def _totals(account: Account, total: Spend) -> dict[str, Any]:
    """The account's totals as the bounds read them; what has none is left out."""

    def of(units: int, unit: int = PICO) -> Fraction | None:
        return None if units >= INFINITE else Fraction(units, unit)

    told: dict[str, Any] = {"pure": of(total[0]), "failure": min(1, Fraction(total[1], ATTO))}
    match account.currency:
        case "zcdp":
            told["rho"] = of(total[2])
        case "gdp":
            told["mu_squared"] = of(total[2])
        case "renyi":
            both = zip(ORDERS, map(of, total[2:]), strict=True)
            told["renyi"] = [(order, value) for order, value in both if value is not None]
    return told
