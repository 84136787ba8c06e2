"""previews.json: the price of many questions in each currency, and their mechanism."""

from typing import Any

from tests.golden import queries
from tests.golden.served.history import History
from tests.golden.served.script import BOTH, COUNT, IN_EACH, LIMITS, ONE
from tests.golden.text import digest

Json = dict[str, Any]
PREFIX = "preview of "
SUMS = ("count", "sum", "mean", "variance", "ratio", "aggregates", "workload", "cdf", "persons")
PRIVACIES: dict[str, Json] = {
    "epsilon": ONE,
    "delta": BOTH,
    "rho": {"rho": "0.02", "delta": "1e-6"},
    "half width": {"half_width": 12, "confidence": 0.9},
}

STREAMS: dict[str, Json] = {
    "above threshold": {"kind": "above_threshold", "threshold": 90, "crossings": 3, "asks_max": 50},
    "running count": {"kind": "running_count", "epochs_max": 12},
}


def previewed() -> dict[str, Json]:
    """Bodies without their dataset."""
    bodies: dict[str, Json] = {}
    for name, (query, privacy, mechanism) in IN_EACH.items():
        named = {} if mechanism is None else {"mechanism": mechanism}
        bodies[name] = {"query": query, "privacy": privacy, **named}
    for terms, privacy in PRIVACIES.items():
        for name in SUMS:
            bodies[f"{name} by {terms}"] = {"query": queries.SUMS[name], "privacy": privacy}
        for name in ("mode", "top 2", "price", "min"):
            bodies[f"{name} by {terms}"] = {"query": queries.CHOICES[name], "privacy": privacy}
    bodies["iqr"] = {"query": queries.RANKS["iqr"], "privacy": ONE}
    return bodies


async def preview(history: History) -> None:
    for currency in LIMITS:
        dataset = {"dataset": f"people_{currency}"}
        for name, body in previewed().items():
            title = f"{PREFIX}{name} in {currency}"
            await history.step(title, "POST /v1/queries/preview", {**dataset, **body}, who="ann")
        for name, stream in STREAMS.items():
            for terms, privacy in PRIVACIES.items():
                body = {**dataset, "stream": stream, "privacy": privacy}
                title = f"{PREFIX}{name} by {terms} in {currency}"
                await history.step(title, "POST /v1/streams/preview", body, who="ann")
    listed: list[Json] = [{"dataset": "by_city", "query": COUNT, "privacy": {"epsilon": 150}}] * 2
    listed += [{**listed[0], "fresh": True}] * 3
    await history.step(f"{PREFIX}a list", "POST /v1/queries/preview", listed, who="ann")


def shortly(reply: Json) -> Json:
    """A preview in a few lines: the chosen mechanism, its price, and the alternatives."""
    preview_fields = {name.removeprefix("body."): value for name, value in reply.items()}
    if "alternatives" not in preview_fields:
        return {
            name: preview_fields[name]
            for name in preview_fields
            if name not in ("request", "asked", "headers")
        }
    others = preview_fields["alternatives"]
    # a very long list is replaced by its digest
    listed = others if isinstance(others, list) else []
    kinds = [f"{item['kind']}{'' if item['payable'] else ', not payable'}" for item in listed]
    rest = ("groups", "cells", "reused", "fits", "remaining_after", "largest_epsilon", "bytes")
    return {
        "mechanism": preview_fields["mechanism"],
        "price": {"charged": preview_fields["price"], "account": preview_fields["account_price"]},
        "expected_error": preview_fields["expected_error"],
        "alternatives": {"kinds": kinds, "digest": digest(others)},
        "rest": {item: preview_fields[item] for item in rest}
        | {"theorem": digest(preview_fields["theorem"])},
        "refusal": preview_fields["refusal"],
    }
