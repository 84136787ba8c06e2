"""Language and floor plan do not get worse: what breaks a rule is on a list that only shrinks.

`tests/house/plain_language.py` has the rules and rewrites the list.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.house import plain_language
from tests.house.plain_language import ALLOWED, BANNED, OPENINGS

RULES = [
    "dialect",
    "test names",
    "vague names",
    "long sentences",
    "wide lines",
    "lines past the limit",
    "files past the limit",
    "names defined twice",
]


@pytest.fixture(scope="module")
def counts() -> dict[str, dict[str, int]]:
    return plain_language.counts()


@pytest.mark.parametrize("rule", RULES)
def test_nothing_breaks_a_rule_more_often_than_the_list_allows(
    counts: dict[str, dict[str, int]], rule: str
) -> None:
    allowed = json.loads(ALLOWED.read_text())[rule]
    worse = {name: n for name, n in counts[rule].items() if n > allowed.get(name, 0)}
    assert not worse, f"{rule}: write these again, or divide them: {worse}"


@pytest.mark.parametrize("rule", RULES)
def test_the_list_allows_no_more_than_there_is(
    counts: dict[str, dict[str, int]], rule: str
) -> None:
    allowed = json.loads(ALLOWED.read_text())[rule]
    spare = {name: n for name, n in allowed.items() if n > counts[rule].get(name, 0)}
    assert not spare, (
        f"{rule}: run `python -m tests.house.plain_language`, the list shrinks: {spare}"
    )


@pytest.mark.parametrize(
    "sentence",
    ["it is told", "Whatever comes", "what becomes of it", "at work now", "so many rows"],
)
def test_the_old_dialect_is_seen(sentence: str) -> None:
    assert BANNED.search(sentence)


@pytest.mark.parametrize(
    "sentence", ["Of a row it is known", "Done. What is left stays", "Whose is"]
)
def test_openings_of_the_old_dialect_are_seen(sentence: str) -> None:
    assert OPENINGS.search(sentence)


@pytest.mark.parametrize(
    ("check", "text", "number"),
    [
        (plain_language.dialect, "# told twice\nx = 'it is told'\n", 2),
        (plain_language.vague_names, "def f(x):\n found = x\n\n\n\n\n return found\n", 1),
        (plain_language.vague_names, "def f(x):\n found = x\n return found\n", 0),
        (plain_language.test_names, "def test_it_is_told() -> None: ...\n", 1),
    ],
)
def test_rules_about_code_see_what_they_are_for(
    tmp_path: Path, check: Callable[[Path], list[tuple[int, str]]], text: str, number: int
) -> None:
    path = tmp_path / "file.py"
    path.write_text(text)
    assert len(check(path)) == number


def test_rules_about_pages_see_long_sentences_and_wide_lines(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    short, long = " ".join(["word"] * 25), " ".join(["word"] * 26)
    path.write_text(f"{long}.\n\n{short}.\n\n`{'x' * 120}`\n")
    assert len(plain_language.long_sentences(path)) == 1
    assert len(plain_language.wide_lines(path)) == 3
