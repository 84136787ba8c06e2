"""Trade-off curve of an account's spend: error rates of the best attack on its releases.

It is exact if the releases are few enough to be read and simple enough to be known: a single one,
or several with one noise whose composition is known. Otherwise it is a bound from the account's
totals.
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
from app.ports.ledger import History

ENTRIES_MAX = 10_000  # entries read to find out whether the releases are simple
CHUNK = 1000
CURVES_MAX = 4  # curves of cells; one of 1001 points takes up to 0.4 s


@dataclass(slots=True)
class TraceTradeoff:
    history: History

    def __call__(self, account: Account, points: int) -> tuple[Tradeoff, Tradeoff]:
        """Curves of the spend and of the promise. Blocking: reads entries."""
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
            # Replacing a person spreads the change over two groups, so the bound is not attained.
            spread = (
                account.balance.persons_may_move
                and isinstance(single, LaplaceTradeoff)
                and single.steps != 1
            )
            if spread or not surely:
                spent = replace(spent, exact=False)
        return spent, promise

    def _simple(self, account: Account) -> tuple[Single | None, bool]:
        """All releases as one known release, and whether all are about the same rows.

        The release is None if it is unknown or there are too many. If all are about the same rows,
        one person is surely in all of them.
        """
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
                    for index, event in enumerate(body["events"]):
                        releases[f"{entry.seq}/{index}"] = _of_event(event)
                        plans.add(f"{entry.seq}/{index}")
            if len(entries) < CHUNK:
                return _together(list(releases.values())), len(plans) == 1
            after = entries[-1].seq
        return None, False


def _of_charge(body: dict[str, Any]) -> Single | None:
    epsilon = Fraction(body["epsilon"], PICO)
    match body:
        case {"strategy": _} | {"moments": _}:  # one person may change many numbers at once
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
    """Several releases as one known release, or None.

    Gaussian releases add their mu^2. Equal integer Laplace releases with answers that change by one
    step equal repeated randomised response.
    """
    if len(releases) == 1:
        return releases[0]
    gaussian = [release for release in releases if isinstance(release, GaussianTradeoff)]
    if gaussian and len(gaussian) == len(releases):
        return GaussianTradeoff(sum((release.mu_squared for release in gaussian), Fraction(0)))
    first = releases[0] if releases else None
    same = all(release == first for release in releases)
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

    A larger total has a lower curve. Beyond `CURVES_MAX` curves one total stands for all of them.
    """
    totals = undominated(account.balance.deciding_totals())
    return totals if len(totals) <= CURVES_MAX else [largest(totals)]


def _totals(account: Account, total: Spend) -> dict[str, Any]:
    """The account's totals as arguments of the bounds; infinite totals are None or left out."""

    def of(units: int, unit: int = PICO) -> Fraction | None:
        return None if units >= INFINITE else Fraction(units, unit)

    bounds: dict[str, Any] = {"pure": of(total[0]), "failure": min(1, Fraction(total[1], ATTO))}
    match account.currency:
        case "zcdp":
            bounds["rho"] = of(total[2])
        case "gdp":
            bounds["mu_squared"] = of(total[2])
        case "renyi":
            both = zip(ORDERS, map(of, total[2:]), strict=True)
            bounds["renyi"] = [(order, value) for order, value in both if value is not None]
    return bounds
