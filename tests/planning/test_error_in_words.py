"""Expected errors have one shape for every kind and mechanism, and a sentence for people."""

import re
from typing import Any

import pytest

from app.data.card import Card
from app.errors import Invalid
from app.planning.error_in_words import percent, rounded_up, shown_error
from app.planning.mechanism_choice import options
from app.planning.plan import make_plan
from app.planning.request import Question
from app.planning.stream_request import Opening, plan_stream
from app.queries import QUERIES
from tests.golden.cards import CARDS
from tests.golden.statements import all_questions
from tests.house.plain_language import BANNED, WORDS_MAX
from tests.queries.cards import card, question

Json = dict[str, Any]
UNITS = {
    "rows",
    "persons",
    "triangles",
    "column",
    "column_squared",
    "share",
    "ranks",
    "score",
    "factor",
    "answer",
    "mixed",
}
PRIVACIES: list[Json] = [{"epsilon": 1, "delta": "1e-6"}, {"rho": "0.1", "delta": "1e-6"}]
ALL = {title: (name, query, mechanism) for title, name, query, mechanism in all_questions()}


def check(error: Json) -> None:
    assert set(error) >= {"half_width", "unit", "confidence", "promise", "text"}
    assert error["unit"] in UNITS
    assert ("column" in error) == error["unit"].startswith("column")
    assert error["confidence"] == 0.9
    half, text = error["half_width"], error["text"]
    assert half is None or half >= 0
    assert isinstance(error["promise"], bool)
    assert text.endswith(".")
    assert not BANNED.search(text)
    assert all(len(sentence.split()) <= WORDS_MAX for sentence in re.split(r"[.:;] ", text)), text
    if half is not None and error["promise"]:
        assert "90 %" in text
    for part in error.get("parts", ()):
        check(
            {name: value for name, value in part.items() if name not in ("kind", "column")}
            | ({"column": part["column"]} if part["unit"].startswith("column") else {})
        )


@pytest.mark.parametrize("title", ALL)
def test_every_way_to_answer_every_kind_has_the_one_shape(title: str) -> None:
    card_name, query, mechanism = ALL[title]
    declared = Card.model_validate(CARDS[card_name])
    served = 0
    for privacy in PRIVACIES:
        body = {"dataset": "d", "query": query, "privacy": privacy, "confidence": 0.9}
        parsed = Question.model_validate({**body, "mechanism": mechanism})
        try:
            found_options = options(parsed, declared, frozenset(), include_named=True)
        except Invalid:
            continue
        for option in found_options:
            served += 1
            check(shown_error(option.release, parsed))
    assert served > 0


def test_no_kind_is_left_out() -> None:
    assert {query["kind"] for _, query, _ in ALL.values()} == set(QUERIES)


def sentence(query: Json, **more: Any) -> str:
    parsed = question(query, **more)
    return str(shown_error(make_plan(parsed, card()).release, parsed)["text"])


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({"kind": "count"}, "With 95 % confidence the noise changes the count by at most 3 rows."),
        (
            {"kind": "count", "group_by": ["city"]},
            "With 95 % confidence the noise changes the count of each group by at most 3 rows.",
        ),
        (
            {"kind": "sum", "column": "age"},
            "With 95 % confidence the noise changes the sum by at most 300 (in the unit of age).",
        ),
        (
            {"kind": "mode", "column": "city"},
            "With 95 % confidence the chosen value has at most 4.095 rows fewer than the first "
            "one.",
        ),
    ],
)
def test_the_sentence_is_plain(query: Json, text: str) -> None:
    assert sentence(query) == text


@pytest.mark.parametrize("kind", ["above_threshold", "running_count"])
def test_streams_have_the_same_shape(kind: str) -> None:
    more: Json = {"threshold": 90, "crossings": 3, "asks_max": 50}
    if kind == "running_count":
        more = {"epochs_max": 12}
    opening = Opening.model_validate(
        {
            "dataset": "d",
            "stream": {"kind": kind, **more},
            "privacy": {"epsilon": 1},
            "confidence": 0.9,
        }
    )
    plan = plan_stream(opening, card())
    check(plan.expected_error)
    assert plan.expected_error["unit"] == "rows"
    assert plan.expected_error["half_width"] > 0
    assert plan.expected_error["promise"]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (30.0, "30"),
        (29.971, "29.98"),
        (0.1, "0.1"),
        (12345.6, "12,346"),
        (0.012341, "0.01235"),
        (2.5e-9, "2.500e-9"),
        (10**18, "1.000e+18"),
    ],
)
def test_numbers_in_sentences_are_rounded_up(number: float, text: str) -> None:
    assert rounded_up(number) == text


def test_a_confidence_is_shown_in_percent() -> None:
    assert [percent(value) for value in (0.95, 0.999, 0.1 + 0.2)] == ["95 %", "99.9 %", "30 %"]
