"""Verification: a sound ledger passes, and every kind of tampering is named."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.rules.terms import AccountTerms
from app.ledger.account import EVERYBODY, Account
from app.ledger.chain import FIRST_PREVIOUS, Book, Entry, canonical, link
from app.ledger.verification.lines import LedgerLine, Scope, from_lines, with_end
from app.ledger.verification.verify import verify
from tests.ledger.verification.books import (
    Made,
    account,
    edited,
    exported,
    grant,
    problems,
    rehashed,
    with_spent,
)


def test_an_untouched_ledger_is_sound(made: Made) -> None:
    report = verify(made.lines())
    assert report.sound
    assert (report.entries, report.books, report.accounts) == (8, 1, 3)


def test_a_ledger_without_entries_is_sound() -> None:
    assert verify([Book("system", 0, FIRST_PREVIOUS, 0)]).sound


def test_anyone_can_recompute_the_first_link_and_the_text(made: Made) -> None:
    first = made.entries[0]
    assert first.hash == link(FIRST_PREVIOUS, first.text)
    assert canonical(json.loads(first.text)) == first.text


def test_time_never_decreases_within_a_book() -> None:
    made = Made()
    made.append("note", {}, at=10**9)
    made.append("note", {}, at=5)
    assert made.entries[-1].at == made.entries[-2].at == 10**9
    assert verify(made.lines()).sound


# Saboteurs


def change(
    index: int, how: Callable[[Entry], Entry]
) -> Callable[[list[LedgerLine]], list[LedgerLine]]:
    def sabotage(lines: list[LedgerLine]) -> list[LedgerLine]:
        entry = lines[index]
        assert isinstance(entry, Entry)
        return [*lines[:index], how(entry), *lines[index + 1 :]]

    return sabotage


def on_account(how: Callable[[Account], Account]) -> Callable[[list[LedgerLine]], list[LedgerLine]]:
    def sabotage(lines: list[LedgerLine]) -> list[LedgerLine]:
        return [
            how(line) if isinstance(line, Account) and line.holder == "ann" else line
            for line in lines
        ]

    return sabotage


HASH = "the hash does not match the entry"
END = "the chain does not end where the book says"
SPENT = "the spend is not the sum of the entries"
LIMIT = "the limit is not the last granted one"
SABOTEURS: dict[str, tuple[Callable[[list[LedgerLine]], list[LedgerLine]], str]] = {
    "edit an amount": (change(3, lambda e: edited(e, '"epsilon":10', '"epsilon":1')), HASH),
    "edit an actor": (change(3, lambda e: edited(e, '"actor":"x"', '"actor":"y"')), HASH),
    "edit and rehash all": (
        lambda lines: rehashed(change(3, lambda e: edited(e, ":10", ":1"))(lines)),
        SPENT,
    ),
    "edit a grant and rehash all": (
        lambda lines: rehashed(
            change(0, lambda e: edited(e, '"limits":[100,0]', '"limits":[999,0]'))(lines)
        ),
        LIMIT,
    ),
    "remove one": (lambda lines: [*lines[:4], *lines[5:]], HASH),
    "remove the first": (lambda lines: lines[1:], HASH),
    "remove one and rehash all": (
        lambda lines: rehashed([*lines[:4], *lines[5:]]),
        "entry 5 is expected here",
    ),
    "swap two": (lambda lines: [*lines[:3], lines[4], lines[3], *lines[5:]], HASH),
    "write one twice": (lambda lines: [*lines[:4], lines[3], *lines[4:]], HASH),
    "cut the tail": (lambda lines: [*lines[:7], *lines[8:]], END),
    "cut the tail and the book's end": (
        lambda lines: rehashed([*lines[:7], Book("b_1", 7, "", 0), *lines[9:]]),
        SPENT,
    ),
    "cut all entries": (lambda lines: lines[8:], END),
    "change the book's end": (
        lambda lines: [Book("b_1", 8, "0" * 64, 0) if isinstance(x, Book) else x for x in lines],
        END,
    ),
    "leave out the book's end": (
        lambda lines: [line for line in lines if not isinstance(line, Book)],
        "the book's own end is missing",
    ),
    "lower a total": (on_account(lambda a: with_spent(a, 1)), SPENT),
    "raise a total": (on_account(lambda a: with_spent(a, 99)), SPENT),
    "raise a limit": (
        on_account(lambda a: a._replace(terms=AccountTerms(1000, 0, (1000, 0)))),
        LIMIT,
    ),
    "change a currency": (on_account(lambda a: a._replace(currency="approximate")), LIMIT),
    "grant a delta": (
        on_account(lambda a: a._replace(terms=AccountTerms(100, 5, (100, 5)))),
        LIMIT,
    ),
    "leave out an account": (
        lambda lines: [x for x in lines if not (isinstance(x, Account) and x.holder == "ann")],
        "entries name an account that is not there",
    ),
    "add an account": (
        lambda lines: [*lines, account("b_1", "eve", 100)],
        LIMIT,
    ),
    "change a column only": (
        change(3, lambda e: e._replace(kind="void")),
        "the columns disagree with the text",
    ),
    "change a time only": (
        change(3, lambda e: e._replace(at=1)),
        "the time is before the previous entry's",
    ),
    "void more than was paid": (
        lambda lines: rehashed(
            change(7, lambda e: edited(e, '"epsilon":1', '"epsilon":1000'))(lines)
        ),
        "it refunds a charge that was never paid",
    ),
    "a charge without an amount": (
        lambda lines: rehashed(change(3, lambda e: edited(e, '"epsilon"', '"epsilom"'))(lines)),
        "the text cannot be read",
    ),
    "an amount that is a fraction": (
        lambda lines: rehashed(change(3, lambda e: edited(e, 'n":10', 'n":9.5'))(lines)),
        "the text cannot be read",
    ),
    "text that is none": (
        lambda lines: rehashed(change(3, lambda e: e._replace(text="{"))(lines)),
        "the text cannot be read",
    ),
}


@pytest.mark.parametrize("saboteur", SABOTEURS)
def test_the_saboteur_is_named(made: Made, saboteur: str) -> None:
    sabotage, expected = SABOTEURS[saboteur]
    found = problems(sabotage(made.lines()))
    assert expected in found, found


@pytest.mark.parametrize("saboteur", ["lower a total", "raise a limit", "leave out an account"])
def test_a_finding_names_the_account(made: Made, saboteur: str) -> None:
    (finding,) = verify(SABOTEURS[saboteur][0](made.lines())).findings
    assert (finding.book, finding.account) == ("b_1", "ann")


def test_a_finding_names_the_entry(made: Made) -> None:
    (finding,) = verify(SABOTEURS["edit an actor"][0](made.lines())).findings
    assert (finding.book, finding.seq) == ("b_1", 4)


# Long histories

steps = st.lists(
    st.tuples(st.sampled_from(["ann", "bob"]), st.integers(0, 30), st.booleans()), max_size=60
)


@given(st.lists(steps, min_size=1, max_size=3))
def test_a_long_history_adds_up_to_its_accounts(
    histories: list[list[tuple[str, int, bool]]],
) -> None:
    lines: list[LedgerLine] = []
    for index, history in enumerate(histories):
        made = Made(f"b_{index}", limit=200)
        for holder, cost, voided in history:
            if made.charge(holder, cost) and voided:
                made.void(holder, cost)
        total = sum(made.accounts[h].balance.common[0] for h in ("ann", "bob"))
        assert made.accounts[EVERYBODY].balance.common == (total, 0)
        assert total <= 200
        lines += made.lines()
    report = verify(lines)
    assert report.sound, report.findings
    assert verify(from_lines(exported(lines))).sound


def test_findings_are_bounded() -> None:
    made = Made()
    for _ in range(1100):
        made.append("note", {})
    entries = [entry._replace(hash="x") for entry in made.entries]
    assert len(verify(entries).findings) == 1000


def test_a_charge_beyond_the_limit_of_its_time_is_found_although_the_chain_is_whole() -> None:
    made = Made(limit=100)
    made.charge("ann", 60)
    made.last = "q_beyond"
    made.append("charge", made.moved("ann", 60))
    for holder in ("ann", EVERYBODY):
        made.accounts[holder] = with_spent(made.accounts[holder], 120)
    assert "it exceeds the limit" in problems(made.lines())


def test_a_charge_is_refunded_once_and_only_if_it_was_paid() -> None:
    made = Made()
    made.charge("ann", 5)
    made.void("ann", 5)
    assert verify(made.lines()).sound
    made.append("void", made.moved("ann", 5))
    assert "it refunds a charge that was never paid" in problems(made.lines())


def test_a_charge_is_made_once_never_negative_and_always_to_the_shared_account() -> None:
    forged: dict[str, dict[str, object]] = {
        "the charge has an earlier entry": {},
        "it does not charge everybody": {"charge": "q_new", "accounts": ["ann"]},
        "the text cannot be read": {"charge": "q_new", "epsilon": -5},
    }
    for problem, body in forged.items():
        made = Made()
        made.charge("ann", 5)
        made.append("charge", {**made.moved("ann", 5), **body})
        assert problem in problems(made.lines())


def test_a_grant_names_the_previous_terms() -> None:
    made = Made()
    made.append("grant", {**grant("ann", 100), "before": None})
    assert problems(made.lines()) == {"it changes a limit that the account did not have"}


def test_an_opened_book_cannot_vanish_from_the_whole_ledger() -> None:
    system = Book("system", 0, FIRST_PREVIOUS, 0)
    opening = system.append(kind="book_opened", actor="x", at=1, body={"book": "b_1"})
    made = Made()
    whole: list[LedgerLine] = [Scope(None), opening, *made.lines(), system]
    assert verify(with_end(whole)).sound
    assert problems(list(with_end([Scope(None), opening, system]))) == {
        "the book's own end is missing"
    }
    alone: list[LedgerLine] = [Scope("system"), opening, system]
    assert verify(with_end(alone)).sound, "a single book needs no other"


def test_a_truncated_snapshot_is_not_sound() -> None:
    system = Book("system", 0, FIRST_PREVIOUS, 0)
    opening = system.append(kind="book_opened", actor="x", at=1, body={"book": "b_1"})
    free = Made()
    whole = list(with_end([Scope(None), opening, *free.lines(), system]))
    assert verify(whole).sound
    for length in range(1, len(whole)):
        assert not verify(whole[:length]).sound, length
    assert "a line follows the last line" in problems([*whole, whole[-2]])
    for index in range(1, len(whole) - 1):
        assert not verify([*whole[:index], *whole[index + 1 :]]).sound, index


def test_an_amount_beyond_64_bits_is_named_and_breaks_nothing() -> None:
    made = Made()
    made.last = "q_huge"
    made.append("charge", made.moved("ann", 2**63))
    assert "the text cannot be read" in problems(made.lines())
    made = Made()
    made.last = "q_no_bound"
    made.append("charge", made.moved("ann", 2**63 - 1))
    assert {"it exceeds the limit", "it cannot be counted in the account's currency"} <= problems(
        made.lines()
    )
