"""Conditions on the version of a budget, given as headers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.rules.terms import AccountTerms
from app.api.http.entity_tags import etag, has_seen, precondition
from app.errors import Invalid, PreconditionFailed
from app.ledger.account import Account
from app.ledger.balance import Balance
from app.ledger.precondition import Precondition, Versions

SOME = Versions(frozenset([3, 7]))


def holds(condition: Precondition, version: int | None) -> bool:
    try:
        condition.must_hold(version)
    except PreconditionFailed:
        return False
    return True


MATCH: dict[str, Versions] = {
    '"3","7"': SOME,
    '"3" , W/"5",\t"7"': SOME,  # a weak tag matches nothing here
    ',"3",,"7",': SOME,
    '"3","7","abc","","-1","*","3\xe9"': SOME,
    '"03"': Versions(),
    "*": Versions(any_version=True),
    "\t* ": Versions(any_version=True),
    'W/"3"': Versions(),
}


@pytest.mark.parametrize("text", MATCH)
def test_if_match_is_read(text: str) -> None:
    assert precondition([text], []) == Precondition(match=MATCH[text])


def test_lines_of_one_header_form_one_list() -> None:
    assert precondition(['"3"', '"7"'], []) == Precondition(match=SOME)


def test_a_weak_tag_counts_for_if_none_match() -> None:
    assert precondition([], ['W/"3", "7"']) == Precondition(none_match=SOME)


@pytest.mark.parametrize(
    "text", ["", " ", ",", "3", '"3', '3"', '*,"3"', '"3" "7"', 'w/"3"', '"a b"']
)
def test_an_invalid_list_of_tags_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        precondition([text], [])
    with pytest.raises(Invalid):
        precondition([], [text])


@pytest.mark.parametrize(
    ("match", "none_match", "holding"),
    [
        (None, None, [None, 3, 4]),
        (SOME, None, [3]),
        (Versions(any_version=True), None, [3, 4]),
        (None, SOME, [None, 4]),
        (None, Versions(any_version=True), [None]),
        (Versions(), None, []),
        (SOME, Versions(frozenset([3])), []),
    ],
)
def test_a_precondition_holds_for_the_matching_state(
    match: Versions | None, none_match: Versions | None, holding: list[int | None]
) -> None:
    condition = Precondition(match, none_match)
    assert [each for each in (None, 3, 4) if holds(condition, each)] == holding


SEEN = {
    '"3"': True,
    'W/"3"': True,
    '"x", "3"': True,
    "*": True,
    '"4"': False,
    "3": False,  # unreadable, so the reply is sent in full
    '"3" "4"': False,
}


@pytest.mark.parametrize("text", SEEN)
def test_if_none_match_recognizes_a_known_state(text: str) -> None:
    account = Account("b", "ann", "Ann", "pure", AccountTerms(1, 0, (1, 0)), Balance((0, 0)), 3)
    assert etag(account) == '"3"'
    assert has_seen(account, [text]) is SEEN[text]
    assert has_seen(account, ['"7"', text]) is (SEEN[text] and text != "*")
    assert not has_seen(account, [])


@given(st.text(alphabet='"W/*, \t37a', max_size=30))
def test_any_text_is_a_condition_or_refused(text: str) -> None:
    try:
        condition = precondition([text], []).match
    except Invalid:
        return
    assert condition is not None
    assert condition.any_version == (text.strip(" \t") == "*")
    assert condition.numbers <= {int(part) for part in text.split('"') if part.isdecimal()}
