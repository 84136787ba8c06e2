"""A small made-up survey, and regressions on it without noise for comparison."""

import hashlib
from typing import Any

import numpy as np

from app.data.card import Card
from app.planning.plan import Plan, make_plan
from app.planning.request import Question
from app.queries.tally import Exact
from app.queries.weighted_noise import Numbers
from tests.queries.cards import card
from tests.queries.reference import Row, in_steps, tallied

COLUMNS: list[dict[str, Any]] = [
    {"name": "age", "type": "integer", "low": 0, "high": 100},
    {"name": "hours", "type": "integer", "low": 0, "high": 80},
    {"name": "sex", "type": "category", "values": ["f", "m"]},
    {"name": "city", "type": "category", "values": ["Bern", "Chur", "Zug"]},
    {"name": "member", "type": "boolean"},
    {"name": "pay", "type": "number", "low": -50.0, "high": 250.0},
]
CARD = card(COLUMNS)
FEATURES = ["age", "sex", "city"]


def draw(person: int, what: str) -> float:
    """Uniform on [0, 1), equal on every machine."""
    digest = hashlib.sha256(f"{what}:{person}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def survey(persons: int) -> list[Row]:
    rows = []
    for i in range(persons):
        age, hours = int(18 + 60 * draw(i, "age")), int(80 * draw(i, "hours"))
        sex = "m" if draw(i, "sex") < 0.5 else "f"
        city = ("Bern", "Chur", "Zug")[int(3 * draw(i, "city"))]
        error = draw(i, "e1") + draw(i, "e2") + draw(i, "e3") - 1.5
        pay = 20 + 0.8 * age + 0.5 * hours + 6 * (sex == "m") + 12 * (city == "Zug") + 40 * error
        member = draw(i, "member") < 0.3
        rows.append(
            {"age": age, "hours": hours, "sex": sex, "city": city, "member": member, "pay": pay}
        )
    return rows


def regression_question(features: list[str], privacy: dict[str, Any], **more: Any) -> Question:
    confidence = more.pop("confidence", 0.95)
    query = {"kind": "linear_regression", "outcome": "pay", "features": features, **more}
    body = {"dataset": "d", "query": query, "privacy": privacy, "confidence": confidence}
    return Question.model_validate(body)


def planned(
    features: list[str], privacy: dict[str, Any], *, made: Card = CARD, **more: Any
) -> Plan:
    currencies = frozenset({"zcdp"} if "rho" in privacy else {"pure"})
    return make_plan(regression_question(features, privacy, **more), made, currencies)


def exact_of(plan: Plan, rows: list[Row]) -> Exact:
    return tallied(plan.card, plan.release.tally, rows)


def design(rows: list[Row], features: list[str], *, intercept: bool = True) -> Numbers:
    """The textbook design matrix: numbers, and 0 or 1 for all values except the first."""
    columns = [np.ones(len(rows))] if intercept else []
    for name in features:
        column = CARD.column(name)
        assert column is not None
        if column.type == "category":
            columns += [np.array([float(r[name] == v) for r in rows]) for v in column.values[1:]]
        else:
            columns.append(np.array([float(row[name]) for row in rows]))
    return np.stack(columns, axis=1)


def outcomes(rows: list[Row]) -> Numbers:
    """Pay, rounded to the grid of a regression."""
    column = CARD.column("pay")
    assert column is not None
    assert column.type == "number"
    low, high = column.steps
    grain = 1
    while (high - low) // grain > 1 << 16:
        grain *= 2
    step = 2.0**-column.grid_exponent
    return np.array(
        [(low + (in_steps(CARD, "pay", r["pay"]) - low) // grain * grain) * step for r in rows]
    )


def least_squares(rows: list[Row], features: list[str], *, intercept: bool = True) -> Numbers:
    x = design(rows, features, intercept=intercept)
    return np.asarray(np.linalg.lstsq(x, outcomes(rows), rcond=None)[0])
