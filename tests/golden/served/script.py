"""The script of the history: people, data, budgets, and failures."""

from typing import Any

from tests.golden import queries
from tests.golden.cards import CARDS, csv_of
from tests.golden.served import reach
from tests.golden.served.history import History
from tests.golden.statements import all_questions

Json = dict[str, Any]
LIMITS: dict[str, Json] = {
    "pure": {"epsilon": 900},
    "approximate": {"epsilon": 900, "delta": "0.01"},
    "zcdp": {"rho": "50", "delta": "0.01", "failure_delta": "0.004"},
    "renyi": {"epsilon": 200, "delta": "0.01", "failure_delta": "0.004", "order": 6},
    "gdp": {"mu": "9", "delta": "0.01", "failure_delta": "0.004"},
}
# For each dataset its card and the currency of its accounts.
DATASETS = {f"people_{currency}": ("people", currency) for currency in LIMITS} | {
    "fixed": ("fixed", "approximate"),
    "visits": ("visits", "approximate"),
    "fixed_visits": ("fixed_visits", "renyi"),
    "graph": ("graph", "approximate"),
    "by_city": ("by_city", "zcdp"),
    "by_age": ("by_age", "pure"),
    "by_ward": ("by_ward", "approximate"),
    "by_arrival": ("by_arrival", "renyi"),
}
ONE, BOTH = {"epsilon": "1"}, {"epsilon": "1", "delta": "1e-6"}
COUNT: Json = {"kind": "count"}
MEAN = queries.SUMS["mean"]
# Asked in every currency; an account refuses what it cannot count.
IN_EACH: dict[str, tuple[Json, Json, Json | None]] = {
    "count": (COUNT, {"epsilon": "0.1"}, None),
    "accurate count": (COUNT, {"half_width": 8, "confidence": 0.9}, None),
    "laplace mean": (MEAN, {"epsilon": "0.25"}, {"kind": "laplace"}),
    "gaussian mean": (MEAN, BOTH, {"kind": "gaussian"}),
    "gaussian sum by rho": (queries.SUMS["sum"], {"rho": "0.02"}, {"kind": "gaussian"}),
    "histogram": (queries.SUMS["histogram of even bins"], ONE, None),
    "many bins": (queries.MANY_BINS, ONE, {"kind": "laplace"}),
    "many gaussian bins": (queries.MANY_BINS, {"rho": "0.1"}, {"kind": "gaussian"}),
    "mode": (queries.CHOICES["mode"], ONE, None),
    "exponential median": (queries.CHOICES["median"], {"rho": "0.05"}, {"kind": "exponential"}),
    "gumbel mode": (queries.CHOICES["mode"], ONE, {"kind": "noisy_max", "noise": "gumbel"}),
    "laplace mode": (queries.CHOICES["mode"], ONE, {"kind": "noisy_max", "noise": "laplace"}),
    "smooth iqr": (queries.RANKS["iqr"], BOTH, None),
    "keys": ({"kind": "keys", "column": "note"}, BOTH, None),
    "texts": (queries.KEYS["histogram of texts"], {"rho": "0.5", "delta": "1e-6"}, None),
    "stable mode": (queries.CHOICES["mode"], BOTH, {"kind": "stable_value"}),
    "learned": (
        queries.LEARNED["logistic regression"],
        BOTH,
        {"kind": "noisy_gradient_descent", "steps": 4, "sampling_rate": 0.1},
    ),
}


async def set_up(history: History) -> None:
    """People, keys, files, datasets and budgets."""
    people = {"ann": "analyst", "bob": "analyst", "eve": "analyst", "vera": "viewer"}
    for name, role in people.items():
        groups = ["lab"] if name in ("ann", "bob") else []
        body: Json = {"name": name, "role": role, "groups": groups, "reason": "joined"}
        await history.json(f"person {name}", "POST /v1/analysts", body)
        issued = await history.json(f"key of {name}", f"POST /v1/analysts/{name}/keys", {})
        history.keys[name] = issued["key"]
    for name, (card, _) in DATASETS.items():
        (history.data / f"{name}.csv").write_text(csv_of("graph" if card == "graph" else name))
        source = {"engine": "duckdb", "path": f"{name}.csv"}
        body = {"name": name, "description": f"rows of {name}", "source": source, **CARDS[card]}
        await history.json(f"dataset {name}", "POST /v1/datasets", body)
    for name, (_, currency) in DATASETS.items():
        for holder in ("*", "ann"):
            grant = {"currency": currency, **LIMITS[currency], "reason": "study"}
            path = f"PUT /v1/datasets/{name}/budgets/{holder}"
            await history.json(f"grant {name} {holder}", path, grant)
    await history.json(
        "grant to a group",
        "PUT /v1/datasets/people_renyi/budgets/group:lab",
        {"currency": "zcdp", "epsilon": 40, "delta": "1e-4"},
    )
    small = {"currency": "pure", "epsilon": "0.5"}
    await history.json("small grant", "PUT /v1/datasets/people_pure/budgets/bob", small)


async def ask_everything(history: History) -> None:
    """Every kind of question, and every mechanism, once; some in every currency."""
    for title, card, query, mechanism in all_questions():
        dataset = "people_approximate" if card == "people" else card
        more: Json = {} if mechanism is None else {"mechanism": mechanism}
        await history.ask(f"ask {title}", dataset, query, BOTH, **more)
    for currency in reach.CURRENCIES:
        for title, (query, privacy, mechanism) in IN_EACH.items():
            more = {} if mechanism is None else {"mechanism": mechanism}
            await history.ask(f"{currency} {title}", f"people_{currency}", query, privacy, **more)
            if currency == "renyi":  # without a group of another currency
                await history.ask(f"renyi alone {title}", "by_arrival", query, privacy, **more)
    of_cells: dict[str, Json] = {
        "by_city": {"kind": "count", "where": queries.BERN},
        "by_age": {"kind": "mean", "column": "income", "where": queries.ADULT},
        "by_ward": {"kind": "count", "group_by": ["city"]},
        "by_arrival": {"kind": "count", "where": {"column": "arrival", "op": "==", "value": 1}},
        "fixed_visits": queries.SUMS["persons by city"],
    }
    for dataset, query in of_cells.items():
        await history.ask(f"cells of {dataset}", dataset, query, {"epsilon": "0.5"})
        await history.ask(f"all of {dataset}", dataset, COUNT, {"epsilon": "0.5"})
    one_cell = {"kind": "count", "where": {"column": "age", "op": "<", "value": 18}}
    await history.ask("one cell of by_age", "by_age", one_cell, {"epsilon": "0.5"})
    for number, sql in enumerate(SQL):
        await history.step(
            f"sql {number}", "POST /v1/queries", {"sql": sql, "privacy": ONE}, who="ann"
        )


SQL = (
    "SELECT COUNT(*) FROM people_pure WHERE age >= 18 AND NOT city = 'Bern'",
    "SELECT city, COUNT(*), AVG(income), VAR_POP(age) FROM people_pure GROUP BY city",
    "SELECT PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY age) FROM people_pure",
    "SELECT COUNT(DISTINCT person) FROM visits WHERE born < DATE '1990-01-31' OR note IN ('rare')",
    "SELECT SUM(age) FROM people_pure HAVING COUNT(*) > 3",
    "SELECT COUNT(*) FROM people_pure WHERE agee = 3",
)
