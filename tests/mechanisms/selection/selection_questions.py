"""Questions whose answer is chosen, and the release of each."""

from decimal import Decimal
from typing import Any

from app.mechanisms.privacy_target import PrivacyTarget
from app.mechanisms.selection.selection_release import SelectionRelease, prepare_by
from app.planning.plan import Plan
from app.planning.request import Question
from app.queries.shapes.selection import SelectionShape
from app.queries.tally import CountRows, Tally

CURRENCIES = ["pure", "approximate", "zcdp", "renyi", "gdp"]
CITY = {"kind": "mode", "column": "city"}
AGE = {"kind": "median", "column": "age"}


def shape(score_range: int, outcomes: int = 4, picks: int | None = None) -> SelectionShape:
    tally = Tally(None, (), (CountRows(),))
    return SelectionShape(tally, range(outcomes), lambda e, _: list(e[0]), score_range, picks=picks)


def choice_question(query: dict[str, Any], privacy: dict[str, Any], **more: Any) -> Question:
    body = {"dataset": "people", "query": query, "privacy": privacy, **more}
    return Question.model_validate(body)


def chosen(plan: Plan) -> SelectionRelease:
    assert isinstance(plan.release, SelectionRelease)
    return plan.release


def rate_of(law: Any, score_range: int, epsilon: str) -> float:
    release = prepare_by(law, shape(score_range), PrivacyTarget(epsilon=Decimal(epsilon)))
    return float(release.rate)
