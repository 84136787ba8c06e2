"""From the text of a query to a priced plan and its statement, with empty caches."""

import time
from collections.abc import Iterator
from statistics import median
from typing import Any

from app.data.card import Card
from app.engines.sql import tally_statement
from app.engines.sql.layout import Layout
from app.planning.plan import make_plan
from app.planning.request import Question
from benchmarks.harness.made_up import CARD
from benchmarks.harness.prepared import card_of
from benchmarks.harness.table import Row

LIMIT_US = 2000.0
TRIES = 101


def measure(queries: dict[str, dict[str, Any]]) -> Iterator[Row]:
    card = card_of(CARD)
    for called, query in queries.items():
        taken = 1e6 * median(_taken(query, card))
        name = f"compiling a plan: {called}"
        yield Row(name, taken, "us", LIMIT_US, taken / LIMIT_US, 1.0, at_most=True)


def _taken(query: dict[str, Any], card: Card) -> Iterator[float]:
    layout = Layout(card)
    for number in range(TRIES):
        where = {"column": "age", "op": ">", "value": 40 + number / 1000}
        body = {
            "dataset": "people",
            "query": {**query, "where": where},
            "privacy": {"epsilon": f"0.01{number:03d}"},
        }
        tally_statement._rendered.cache_clear()  # otherwise the statement would be a cached one
        begin = time.perf_counter()
        plan = make_plan(Question.model_validate(body), card, frozenset({"pure"}))
        tally_statement.render(layout, plan.release.tally)
        yield time.perf_counter() - begin
