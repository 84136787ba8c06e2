"""Every question of the documentation gets the answer that its page shows.

The tests ask the demo's datasets, and made-up rows for cards on a page.
"""

import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest

from app import demo
from app.demo import census
from app.demo.cards import CENSUS, RAND_HIE
from app.mechanisms import MECHANISMS
from app.mechanisms.streams import above_threshold, tree_counter
from app.queries import QUERIES
from tests.house.documentation import DOCS, check_shown, examples, pages
from tests.server import REGIONS, Json, World, ask, made, new_key

Example = tuple[Json, Any]

BUDGET = {"currency": "approximate", "epsilon": 1000, "delta": "0.01"}
# Fields that noise decides; all others are as the page shows.
FREE = {"value", "low", "high", "bound", "adjusted", "reported", "standard_error", "rows"}
# Random: a bound that the mechanism chose passes its test with probability 0.9.
MAY_WITHHOLD = {"propose_test_release": ("withheld",), "stable_value": ("withheld",)}
PREVIEWS = DOCS / "questions" / "preview.md"
QUESTION_PAGES = sorted({*(DOCS / "questions").glob("*.md")} - {PREVIEWS})
ROWS: dict[str, list[list[object]]] = {
    "visits": [
        [f"p{i}", ("flu", "gout", "mumps")[i % 3], REGIONS[i % 2], 18 + i % 60] for i in range(900)
    ],
    "survey": [[18 + i % 60, 1000 * (i % 90), REGIONS[i % 4], i % 3 == 0] for i in range(2000)],
    "friends": [[i, (i + j) % 100, (i + j) % 10] for i in range(100) for j in (1, 2, 3)],
}


def documented(path: Path) -> list[Example]:
    return [each for each in examples(path.read_text()) if isinstance(each[0], dict)]


def questions(path: Path) -> list[Example]:
    return [each for each in documented(path) if "privacy" in each[0] and "stream" not in each[0]]


def cards() -> list[Json]:
    shown = (value for path in QUESTION_PAGES for value, _ in documented(path))
    return [value for value in shown if "source" in value]


@pytest.fixture(scope="module")
def client(live: World) -> httpx.Client:
    """An analyst with a budget on all datasets of the documentation."""
    data = live.ledger.data
    census.write(data / CENSUS["source"]["path"])
    path = RAND_HIE["source"]["path"]
    shutil.copy(Path(demo.__file__).with_name(path), data / path)
    person = live.person()
    for card in (CENSUS, RAND_HIE, *cards()):
        if card["name"] in ROWS:
            names = [column["name"] for column in card["columns"]]
            header = [*filter(None, [card["person"].get("column")]), *names]
            live.write_csv(ROWS[card["name"]], header, card["source"]["path"])
        made(live.admin.post("/v1/datasets", json=card))
        for holder in ("*", person.name):
            made(live.admin.put(f"/v1/datasets/{card['name']}/budgets/{holder}", json=BUDGET))
    return live.client(person)


def test_every_kind_and_every_mechanism_has_an_example() -> None:
    shown = [value for path in QUESTION_PAGES for value, _ in questions(path)]
    asked = [value["query"] for value in shown if "query" in value]
    assert {query["kind"] for query in asked} == set(QUERIES)
    named = {value["mechanism"]["kind"] for value in shown if "mechanism" in value}
    assert named == set(MECHANISMS)
    answered = [path.name for path in QUESTION_PAGES if any(a for _, a in questions(path))]
    without = {"README.md", "mechanisms.md"}  # other pages show their questions with answers
    assert set(answered) == {path.name for path in QUESTION_PAGES} - without


@pytest.mark.parametrize("path", QUESTION_PAGES, ids=lambda path: path.stem)
def test_the_questions_of_a_page_get_the_answers_it_shows(client: httpx.Client, path: Path) -> None:
    for question, shown in questions(path):
        answer = made(ask(client, question, new_key()))
        if shown is None:
            named = question.get("mechanism", {}).get("kind")
            assert answer["status"] in ("answered", *MAY_WITHHOLD.get(named, ()))
        else:
            check_shown(shown, answer, FREE)


def test_the_streams_of_their_page_behave_as_it_shows(client: httpx.Client) -> None:
    stream = ""
    kinds = []
    for body, shown in documented(DOCS / "streams.md"):
        headers = {"Idempotency-Key": new_key()}
        if "stream" in body:
            kinds.append(body["stream"]["kind"])
            stream = made(client.post("/v1/streams", json=body, headers=headers))["id"]
        else:
            reply = made(client.post(f"/v1/streams/{stream}/ask", json=body, headers=headers))
            check_shown(shown, reply, FREE)
    assert kinds == [above_threshold.KIND, tree_counter.KIND]


def test_the_previews_of_their_page_are_as_it_shows(client: httpx.Client) -> None:
    bodies = questions(PREVIEWS)
    for body, shown in bodies:
        assert shown is not None
        check_shown(shown, made(client.post("/v1/queries/preview", json=body)), ())
    assert bodies


def test_no_other_page_has_a_question() -> None:
    """This file would not ask it."""
    asked = {*QUESTION_PAGES, PREVIEWS, DOCS / "streams.md"}
    others = [path for path in pages() if path not in asked]
    assert [path.name for path in others if questions(path)] == []
