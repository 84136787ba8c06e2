"""Plans of triangle counts."""

from typing import Any

from app.planning.plan import Plan, make_plan
from app.planning.request import Question
from tests.engines.test_graph import edge_card


def plan(nodes: int, privacy: dict[str, Any], mechanism: dict[str, Any] | None = None) -> Plan:
    asked = {"dataset": "d", "query": {"kind": "triangles"}, "privacy": privacy}
    if mechanism is not None:
        asked["mechanism"] = mechanism
    return make_plan(Question.model_validate(asked), edge_card(nodes))
