"""Every problem type has a page and JSON, without a key, and they say what docs/errors.md says."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typing_extensions import override

from app.api.http.problem_texts import PROBLEM_TYPES, TEXTS
from app.api.http.problems import STATUSES, slug
from tests.server import World, made

ERRORS = Path(__file__).resolve().parents[3] / "docs" / "errors.md"
HTML = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
CLASSES = {slug(kind): kind.__name__ for kind in TEXTS}


class Tags(HTMLParser):
    """Names and attributes of all tags, and the text between them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}

    @override
    def handle_data(self, data: str) -> None:
        self.text += data


def test_every_error_class_has_a_text() -> None:
    assert set(TEXTS) == set(STATUSES)
    texts = [text for kind in PROBLEM_TYPES.values() for text in kind.text]
    assert all(text.endswith(".") and "  " not in text for text in texts)


@pytest.mark.parametrize("name", PROBLEM_TYPES)
def test_the_documentation_says_the_same(name: str) -> None:
    kind = PROBLEM_TYPES[name]
    facts = [str(kind.status or ""), f"`{CLASSES[name]}`" if name in CLASSES else ""]
    shown = f" ({', '.join(filter(None, facts))})" if any(facts) else ""
    expected = f"- `{name}`{shown}: {kind.text.meaning} {kind.text.what_to_do}"
    listed = [
        " ".join(item.split())
        for item in re.findall(r"^- `.*(?:\n  .*)*", ERRORS.read_text(), re.MULTILINE)
    ]
    assert expected in listed


def test_the_documentation_lists_no_other_type() -> None:
    named = re.findall(r"^- `([a-z-]+)`(?: \(|:)", ERRORS.read_text(), re.MULTILINE)
    assert sorted(named) == sorted(PROBLEM_TYPES)


def test_each_type_is_served_as_json_and_as_a_page_without_a_key(live: World) -> None:
    client = live.server.client()
    items = made(client.get("/problems"))["items"]
    assert [item["type"] for item in items] == [f"/problems/{name}" for name in PROBLEM_TYPES]
    for item in items:
        reply = client.get(item["type"])
        assert made(reply) == item
        assert set(item) == {"type", "title", "status", "meaning", "what_to_do"}
        page = client.get(item["type"], headers=HTML)
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert reply.headers["vary"] == page.headers["vary"] == "Accept"
        text = Tags(page.text).text
        assert item["meaning"].replace("`", "") in text
        assert item["what_to_do"].replace("`", "") in text


def test_pages_have_the_look_and_the_policy_of_all_pages(live: World) -> None:
    client = live.server.client()
    for path in ("/problems", "/problems/not-authenticated"):
        page = client.get(path, headers=HTML)
        assert {"header", "main", "link"} <= Tags(page.text).names
        (policy,) = page.headers.get_list("content-security-policy")
        assert "style-src 'self'" in policy
        assert "unsafe" not in policy
    explained = client.get("/problems/not-authenticated", headers=HTML)
    assert "Authorization: Bearer <key>" in Tags(explained.text).text


def test_the_type_of_a_real_problem_is_an_address(live: World) -> None:
    problem = live.server.client().get("/v1/budgets").json()
    explained = made(live.server.client().get(problem["type"]))
    assert (explained["status"], explained["title"]) == (problem["status"], problem["title"])


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("budget-exausted", ["budget-exhausted"]),
        ("Not-Fund", ["not-found"]),
        ("engin-failed", ["engine-failed", "precondition-failed"]),
        ("<script>", []),
        ("x" * 5000, []),
    ],
)
def test_an_unknown_type_gives_the_nearest_names(live: World, name: str, near: list[str]) -> None:
    client = live.server.client()
    reply = client.get(f"/problems/{name}")
    assert reply.status_code == 404
    problem = reply.json()
    assert problem["type"] == "/problems/not-found"
    assert problem["nearest"][: len(near)] == near
    page = client.get(f"/problems/{name}", headers=HTML)
    assert page.status_code == 404
    assert "There is no problem of this type" in Tags(page.text).text
    assert all(one in Tags(page.text).text for one in near)
    assert name not in reply.text
    assert name not in Tags(page.text).text
    assert client.get("/problems?page=2").status_code == 422
