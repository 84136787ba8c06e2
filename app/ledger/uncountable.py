"""Refusal of a loss that an account's currency cannot count, with advice."""

from app.accounting import COMPOSITION_RULES
from app.accounting.loss import Loss
from app.accounting.precise import INFINITE
from app.errors import Invalid

COUNTS = {
    "pure": "epsilon alone",
    "approximate": "epsilon and delta",
    "zcdp": "rho",
    "renyi": "a Rényi curve",
    "gdp": "mu",
}
QUESTION = "/mechanism"


def uncountable(shown: str, currency: str, loss: Loss, at: str = QUESTION) -> Invalid:
    """Refusal: what this account counts, what the loss has instead, and what to do.

    `at`: JSON pointer to the query's mechanism, or to a loss that is booked from elsewhere.
    """
    able = [name for name, rule in COMPOSITION_RULES.items() if rule.can_pay(rule.read(loss))]
    ways = _of_the_question(currency, loss) if at == QUESTION else []
    if able:
        ways.append("ask an administrator for a budget in another currency")
    advice = f"{', or '.join(ways)}; " if ways else ""
    return Invalid.field(
        at,
        f"the account of {shown} is {currency} and counts {COUNTS[currency]}, and this loss "
        f"{_has(currency, loss)}: {advice}currencies that can: {', '.join(able) or 'none'}",
    )


def _has(currency: str, loss: Loss) -> str:
    if currency in ("pure", "approximate"):
        return "is a rho without an epsilon" if loss.epsilon >= INFINITE else "has a delta"
    return "has none, nor a pure epsilon"


def _of_the_question(currency: str, loss: Loss) -> list[str]:
    """Changes that the analyst can make to the query itself."""
    ways: list[str] = []
    if currency == "approximate" and loss.epsilon >= INFINITE:
        ways.append("add a delta to privacy")
    if currency in ("pure", "approximate"):
        ways.append(
            "give privacy as epsilon without delta and choose a mechanism that needs no delta, "
            "such as laplace"
        )
    else:
        ways.append("choose another mechanism, such as laplace or gaussian")
    return ways
