"""Names: similar ones are equal, invisible characters are refused; identifiers sort by time."""

import sys
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import Invalid
from app.names import NAME_LENGTH_MAX, check_name, folded, new_id

names = st.text(min_size=1, max_size=20)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ann", "ann"),
        ("\uff21\uff2e\uff2e", "ann"),
        ("Straße", "STRASSE"),
        ("café", "cafe\u0301"),
        ("ﬁle", "FILE"),
        ("Ⅳ", "iv"),
        ("①", "1"),
    ],
)
def test_names_that_look_alike_are_one_name(one: str, other: str) -> None:
    assert folded(one) == folded(other)


@settings(deadline=None)
@given(names)
def test_folding_is_idempotent_and_ignores_display_form(name: str) -> None:
    assert folded(folded(name)) == folded(name)
    assert folded(unicodedata.normalize("NFKC", name)) == folded(name)


def test_folding_is_idempotent_for_every_single_character() -> None:
    for code in range(sys.maxunicode + 1):
        letter = chr(code)
        if unicodedata.category(letter) not in {"Cs", "Cn", "Co"}:
            assert folded(folded(letter)) == folded(letter)


@pytest.mark.parametrize(
    "name", ["a", "Ann", "Zoë Ü", "人事", "x" * 100, "a b", "o'brien", "наука"]
)
def test_an_ordinary_name_is_shown_unchanged(name: str) -> None:
    assert check_name(name, "/name") == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "\u00a0",
        " ann",
        "ann ",
        "ann\u3000",
        "x" * 101,
        "\ufdfa" * 10,  # one character that is eighteen when shown
        "an\tn",
        "an\nn",
        "an\x00n",
        "an\x7fn",
        "an\u200bn",
        "an\u200dn",
        "an\u00adn",
        "an\u202en",
        "an\u2028n",
        "\ufeffann",
        "an\ud800n",
        "an\ue000n",
        "an\U000e0041n",
        "an\u0378n",
        ".",
        "..",
        "\u2025",  # two dots when shown
    ],
)
def test_a_name_that_is_empty_too_long_or_invisible_is_refused(name: str) -> None:
    with pytest.raises(Invalid) as caught:
        check_name(name, "/name")
    assert caught.value.fields[0].pointer == "/name"


@pytest.mark.parametrize(
    "blank",
    [
        "\ufe0f",
        "\u034f",
        "\u115f",
        "\u1160",
        "\u3164",
        "\u180b",
        "\u17b4",
        "\U000e0100",
        "\u2800",
        "\uffa0",
    ],
)
def test_invisible_letters_and_marks_are_refused_too(blank: str) -> None:
    for name in (f"ann{blank}", f"a{blank}nn", blank):
        with pytest.raises(Invalid):
            check_name(name, "/name")


def test_reserved_characters_are_refused_where_they_have_a_meaning() -> None:
    assert check_name("a/b", "/name") == "a/b"
    for name in ("a/b", "a\uff0fb", "*"):
        with pytest.raises(Invalid):
            check_name(name, "/name", forbidden="/*")


@settings(deadline=None)
@given(names)
def test_an_accepted_name_is_accepted_again_in_its_shown_form(name: str) -> None:
    try:
        shown = check_name(name, "/name")
    except Invalid:
        return
    assert check_name(shown, "/name") == shown
    assert 0 < len(shown) <= NAME_LENGTH_MAX
    assert folded(shown) == folded(name)


# Identifiers


def test_identifiers_are_unique_and_of_one_length() -> None:
    made = [new_id("q") for _ in range(10_000)]
    assert len(set(made)) == len(made)
    assert {len(each) for each in made} == {34}
    assert all(each.startswith("q_") and each[2:].isalnum() for each in made)


def test_identifiers_of_later_milliseconds_sort_later() -> None:
    made = []
    for _ in range(5):
        made.append(new_id("q"))
        time.sleep(0.002)
    assert made == sorted(made)
