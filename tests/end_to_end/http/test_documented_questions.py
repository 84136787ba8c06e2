"""The examples of docs/reference.md on blocks, graphs and predictions are answered as they are."""

import json
import re
from pathlib import Path

from tests.end_to_end.questions.test_triangles import EDGE, ends
from tests.server import Json, World, ask, made, new_key

REFERENCE = (Path(__file__).parents[3] / "docs" / "reference.md").read_text()


def documented(title: str) -> list[Json]:
    section = REFERENCE[REFERENCE.index(f"### {title}\n") :]
    block = re.search(r"```json\n(.*?)```", section, re.DOTALL)
    assert block is not None
    found = [json.loads(line) for line in block[1].splitlines()]
    assert len(found) >= 2
    return found


def test_blocks_and_predictions(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person, epsilon=100, total=100)
    for query in [*documented("Sample and aggregate"), *documented("Prediction variance")]:
        question = {"dataset": dataset, "query": query, "privacy": {"epsilon": 1}}
        assert made(ask(live.client(person), question, new_key()))["status"] == "answered"


def test_triangles(live: World) -> None:
    person = live.person()
    weight = {"name": "weight", "type": "integer", "low": 0, "high": 9}
    path = live.write_csv([(0, 1, 3), (1, 2, 1), (2, 0, 5)], ["a", "b", "weight"])
    dataset = live.dataset(path, person=EDGE, columns=[*ends(100), weight])
    for holder in ("*", person.name):
        budget = {"currency": "approximate", "epsilon": 100, "delta": "0.01"}
        made(live.admin.put(f"/v1/datasets/{dataset}/budgets/{holder}", json=budget))
    for question in documented("Triangles"):
        answer = made(ask(live.client(person), {"dataset": dataset, **question}, new_key()))
        assert answer["status"] == "answered"
