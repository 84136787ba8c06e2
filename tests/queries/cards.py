"""Cards and questions for tests of the core."""

from typing import Any

from app.data.card import Card
from app.mechanisms.noise.additive import AdditiveRelease
from app.mechanisms.release import Release
from app.planning.plan import Plan
from app.planning.request import Question
from app.queries.shapes.selection import SelectionShape
from app.queries.shapes.sums import SumShape

COLUMNS: list[dict[str, Any]] = [
    {"name": "age", "type": "integer", "low": 0, "high": 100},
    {"name": "income", "type": "number", "low": -10.5, "high": 1000.25},
    {"name": "city", "type": "category", "values": ["Bern", "Chur", "Zürich"]},
    {"name": "member", "type": "boolean"},
    {"name": "born", "type": "date", "low": "1950-01-01", "high": "2010-12-31"},
]


def card(
    columns: list[dict[str, Any]] | None = None,
    *,
    neighbours: str = "add_remove",
    rows_max: int | None = None,
) -> Card:
    """A card on which each row is a person or, with `rows_max`, a person has at most that many
    rows.
    """
    person: dict[str, Any] = {"kind": "row"}
    if rows_max is not None:
        person = {"kind": "column", "column": "person", "rows_max": rows_max}
    return Card.model_validate(
        {
            "person": person,
            "neighbours": neighbours,
            "rows": 100 if neighbours == "replace_one" else None,
            "columns": COLUMNS if columns is None else columns,
        }
    )


def question(query: dict[str, Any], *, epsilon: object = "1", **more: Any) -> Question:
    return Question.model_validate(
        {"dataset": "people", "query": query, "privacy": {"epsilon": epsilon}, **more}
    )


def measured_shape(query: dict[str, Any], made: Card) -> SumShape:
    """The shape of a query that is answered by numbers with noise."""
    shape = question(query).query.shape(made)
    assert isinstance(shape, SumShape)
    return shape


def choice_shape(query: dict[str, Any], made: Card) -> SelectionShape:
    """The shape of a query that is answered by an outcome."""
    shape = question(query).query.shape(made)
    assert isinstance(shape, SelectionShape)
    return shape


def additive(plan: Plan) -> AdditiveRelease:
    """The release of a plan whose mechanism adds noise to measures."""
    assert isinstance(plan.release, AdditiveRelease)
    return plan.release


def promised_width(release: Release, confidence: float) -> float:
    """The half width that a release promises."""
    error = release.expected_error(confidence)
    assert error.promise
    assert error.half_width is not None
    return error.half_width
