"""The pages under docs/ have valid links, valid JSON, and an entry in the table of contents."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.house.documentation import DOCS, TOP, check_shown, examples, pages

LINK = re.compile(r"\]\(([^)\s]+)\)")
PAGES = [TOP / "README.md", *pages()]


def anchors(path: Path) -> set[str]:
    """The anchors that a Markdown viewer gives to the headings of a page."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def links(path: Path) -> list[str]:
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [link for link in LINK.findall(text) if "://" not in link]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(TOP)))
def test_every_link_leads_to_a_page_and_a_heading(path: Path) -> None:
    broken = []
    for link in links(path):
        place, _, anchor = link.partition("#")
        target = (path.parent / place).resolve() if place else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_page_is_reached_from_the_table_of_contents() -> None:
    waiting, seen = [DOCS / "README.md"], set()
    while waiting:
        path = waiting.pop()
        if path not in seen and path.suffix == ".md":
            seen.add(path)
            targets = (path.parent / link.partition("#")[0] for link in links(path))
            waiting += [target.resolve() for target in targets if target.is_file()]
    assert set(pages()) <= seen


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(TOP)))
def test_every_json_block_is_json(path: Path) -> None:
    examples(path.read_text())


@pytest.mark.parametrize(
    ("shown", "got"),
    [
        ({"value": 1}, {}),
        ({"value": 1}, {"value": None}),
        ({"scale": 10.0}, {"scale": 10.1}),
        ({"value": [1]}, {"value": [1, 2]}),
        ({"status": "answered"}, {"status": "withheld"}),
        ({"mechanism": {"kind": "laplace"}}, {"mechanism": {"kind": "gaussian"}}),
    ],
)
def test_a_reply_that_differs_from_the_page_is_noticed(shown: Any, got: Any) -> None:
    with pytest.raises(AssertionError):
        check_shown(shown, got, {"value"})


def test_random_and_rounded_values_may_differ_from_the_page() -> None:
    shown = {"value": 5463, "scale": 1.2992}
    check_shown(shown, {"value": 5470.5, "scale": 1.29921602, "id": "q_1"}, {"value"})


def test_every_file_that_a_page_names_exists() -> None:
    named = re.compile(r"\b(?:app|tests|benchmarks|migrations|docs)(?:/\w+)+\.(?:py|md|json|svg)\b")
    for path in [*pages(), DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md"]:
        missing = [
            name for name in named.findall(path.read_text()) if not (DOCS.parent / name).exists()
        ]
        assert not missing, f"{path.name}: {missing}"
