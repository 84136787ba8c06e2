"""Questions about private keys, and their prepared releases."""

from typing import Any

from app.mechanisms.private_keys.stability_histogram import StabilityRelease
from app.planning.plan import make_plan
from app.planning.request import Question
from tests.queries.cards import card

COLUMNS: list[dict[str, Any]] = [{"name": "note", "type": "text"}]


def key_question(privacy: dict[str, Any], **more: Any) -> Question:
    query = {"kind": "count", "group_by": [{"column": "note", "keys": "private"}]}
    return Question.model_validate({"dataset": "d", "query": query, "privacy": privacy, **more})


def release_of(
    privacy: dict[str, Any], relation: str = "add_remove", rows: int = 1, noise: str = "laplace"
) -> StabilityRelease:
    made = card(COLUMNS, neighbours=relation, rows_max=rows)
    question = key_question(privacy, mechanism={"kind": "stability_histogram", "noise": noise})
    release = make_plan(question, made).release
    assert isinstance(release, StabilityRelease)
    return release
