"""People, datasets and budgets on both stores: every change is an entry, and names are never
reused.
"""

import json
from typing import Any

import pytest

from app.access import Role
from app.data.card import Dataset
from app.errors import (
    AppError,
    BudgetExhausted,
    Conflict,
    IdempotencyConflict,
    NotFound,
    PreconditionFailed,
)
from app.ledger.account import EVERYBODY
from app.ledger.chain import SYSTEM_BOOK, Entry
from app.ledger.precondition import MUST_BE_NEW, Precondition, Versions
from app.ledger.verification.verify import verify
from app.store.writer.connection import now_microseconds
from tests.queries.cards import card
from tests.store.ledgers import TENTH, Ledger, register


def last_entry(ledger: Ledger, book: str) -> dict[str, Any]:
    entries: list[Entry] = []
    while page := ledger.history.entries(
        book_id=book, after=(0, "", entries[-1].seq if entries else 0), limit=1000
    ):
        entries += page
    said: dict[str, Any] = json.loads(entries[-1].text)
    return said


# People


def test_new_people_changed_people_and_keys_are_entries_of_the_system_book(ledger: Ledger) -> None:
    people = ledger.people
    name = ledger.analysts[0].name
    people.create("admin", "somebody new", Role.ANALYST, None, None, "")
    said = last_entry(ledger, SYSTEM_BOOK)
    assert (said["kind"], said["actor"]) == ("analyst_created", "admin")
    people.alter("admin", name, role=Role.VIEWER, enabled=None, groups=None, reason="moved")
    said = last_entry(ledger, SYSTEM_BOOK)
    assert said["kind"] == "analyst_changed"
    assert said["body"]["before"] == {"role": "analyst", "enabled": True, "groups": []}
    assert said["body"]["after"] == {"role": "viewer", "enabled": True, "groups": []}
    assert said["body"]["reason"] == "moved"
    key, secret = people.issue_key(
        "admin", name, expires_at=None, reason=None, request=None, body=""
    )
    assert last_entry(ledger, SYSTEM_BOOK)["kind"] == "key_issued"
    people.revoke_key("admin", key.id, "lost")
    assert last_entry(ledger, SYSTEM_BOOK)["kind"] == "key_revoked"
    assert secret is not None
    assert secret not in json.dumps(ledger.everything(), default=str)
    assert verify(ledger.history.snapshot(SYSTEM_BOOK)).sound


def test_a_name_is_taken_in_every_spelling(ledger: Ledger) -> None:
    name = ledger.analysts[0].name
    for same in (name, name.upper(), name.replace("A", "\uff21")):
        with pytest.raises(Conflict):
            ledger.people.create("admin", same, Role.VIEWER, None, None, "")
        assert ledger.people.find(same).id == ledger.analysts[0].id


def test_a_disabled_analyst_keeps_the_name_and_the_budget(ledger: Ledger) -> None:
    name = ledger.analysts[0].name
    ledger.charge(ledger.order(tenths=3))
    ledger.people.alter("admin", name, role=None, enabled=False, groups=None, reason=None)
    with pytest.raises(Conflict):
        ledger.people.create("admin", name, Role.ANALYST, None, None, "")
    assert ledger.spent() == 3


def test_a_key_works_until_it_is_revoked_or_expires_or_its_owner_is_disabled(
    ledger: Ledger,
) -> None:
    people, name = ledger.people, ledger.analysts[0].name

    def key(expires_at: int | None = None) -> tuple[str, str]:
        made, secret = people.issue_key(
            "admin", name, expires_at=expires_at, reason=None, request=None, body=""
        )
        assert secret is not None
        return made.id, secret

    key_id, secret = key()
    found = people.principal(secret)
    assert found is not None
    assert (found.name, found.role, found.key_id) == (name, Role.ANALYST, key_id)
    assert people.principal(secret[:-1]) is None
    assert people.principal("\ud800") is None
    people.revoke_key("admin", key_id, None)
    assert people.principal(secret) is None
    assert people.principal(key(now_microseconds() - 1)[1]) is None
    _, valid = key(now_microseconds() + 60_000_000)
    assert people.principal(valid) is not None
    people.alter("admin", name, role=None, enabled=False, groups=None, reason=None)
    assert people.principal(valid) is None


def test_revoking_again_changes_nothing_and_an_unknown_key_is_not_found(ledger: Ledger) -> None:
    key, _ = ledger.people.issue_key(
        "admin", ledger.analysts[0].name, expires_at=None, reason=None, request=None, body=""
    )
    ledger.people.revoke_key("admin", key.id, None)
    before = ledger.everything()["entries"]
    ledger.people.revoke_key("admin", key.id, None)
    assert ledger.everything()["entries"] == before
    with pytest.raises(NotFound):
        ledger.people.revoke_key("admin", "k_none", None)


def test_the_last_administrator_can_be_neither_disabled_nor_demoted(ledger: Ledger) -> None:
    alone = [a for a in ledger.people.all(after="", limit=10_000) if a.role is Role.ADMIN]
    for other in alone[1:]:
        ledger.people.alter(
            "admin", other.name, role=Role.VIEWER, enabled=None, groups=None, reason=None
        )
    for change in ({"enabled": False, "role": None}, {"enabled": None, "role": Role.VIEWER}):
        with pytest.raises(Conflict, match="last administrator"):
            ledger.people.alter("admin", alone[0].name, groups=None, reason=None, **change)
    assert ledger.people.first_admin("given") is None


# Repeated requests


def test_a_repeated_request_is_carried_out_once(ledger: Ledger) -> None:
    people, request = ledger.people, f"{ledger.dataset.id} request"
    name = f"Twice {ledger.dataset.id}"
    first = people.create("admin", name, Role.VIEWER, None, request, "body")
    before = ledger.everything()["entries"]
    assert people.create("admin", name, Role.VIEWER, None, request, "body") == first
    assert ledger.everything()["entries"] == before
    with pytest.raises(IdempotencyConflict):
        people.create("admin", "Another", Role.VIEWER, None, request, "another body")


def test_a_key_requested_twice_is_shown_once(ledger: Ledger) -> None:
    name, request = ledger.analysts[0].name, f"{ledger.dataset.id} key"
    given = {"expires_at": None, "reason": None, "request": request, "body": "b"}
    first, secret = ledger.people.issue_key("admin", name, **given)  # type: ignore[arg-type]
    again, nothing = ledger.people.issue_key("admin", name, **given)  # type: ignore[arg-type]
    assert secret is not None
    assert nothing is None
    assert (first.id, first.prefix) == (again.id, again.prefix)


# Datasets


def test_the_same_rows_or_the_same_file_under_another_name_share_the_budget(
    ledger: Ledger,
) -> None:
    dataset = ledger.dataset
    ledger.charge(ledger.order(tenths=8))
    content, place = f"rows of {dataset.name}", f"{dataset.name}.csv"
    for index, changes in enumerate(
        [{"content": content}, {"place": place}, {"content": content, "place": place}]
    ):
        other = register(ledger.datasets, f"{dataset.name} again {index}", **changes)
        assert other.book_id == dataset.book_id
        ledger.dataset = other
        (refusal,) = ledger.settle(ledger.order(tenths=3))
        assert isinstance(refusal, BudgetExhausted)
    third = register(ledger.datasets, f"{dataset.name} else")
    assert third.book_id != dataset.book_id


def test_rows_of_one_dataset_in_the_file_of_another_are_refused(ledger: Ledger) -> None:
    one, other = (register(ledger.datasets, f"{ledger.dataset.id} {i}") for i in range(2))
    with pytest.raises(Conflict):
        register(
            ledger.datasets,
            f"{ledger.dataset.id} both",
            content=f"rows of {one.name}",
            place=f"{other.name}.csv",
        )


@pytest.mark.parametrize(
    "other", [card(neighbours="replace_one"), card(rows_max=3)], ids=["relation", "person"]
)
def test_the_same_rows_under_another_relation_or_person_are_refused(
    ledger: Ledger, other: object
) -> None:
    before = ledger.everything()
    with pytest.raises(Conflict):
        register(ledger.datasets, "other", content=f"rows of {ledger.dataset.name}", card=other)
    assert ledger.everything() == before


def test_a_dataset_is_found_by_every_spelling_of_its_name(ledger: Ledger) -> None:
    name = ledger.dataset.name
    for same in (name, name.upper()):
        assert ledger.datasets.find(same).id == ledger.dataset.id
        with pytest.raises(Conflict):
            register(ledger.datasets, same)
    assert ledger.datasets.find(name).card == ledger.dataset.card
    with pytest.raises(NotFound):
        ledger.datasets.find("none")


def test_fingerprints_reveal_nothing_without_the_secret(ledger: Ledger) -> None:
    fingerprint = ledger.datasets.fingerprint(ledger.dataset)
    assert len(fingerprint) == 64
    for row in ledger.everything()["fingerprints"]:
        assert "rows of" not in str(row)


def test_closing_a_dataset_is_an_entry_and_raises_the_catalogue_number(ledger: Ledger) -> None:
    number = ledger.catalogue()
    closed = ledger.datasets.alter(
        "admin", ledger.dataset.name, description="old", closed=True, reason="done"
    )
    assert closed.closed
    assert ledger.catalogue() == number + 1
    said = last_entry(ledger, ledger.dataset.book_id)
    assert said["kind"] == "dataset_changed"
    assert said["body"]["after"] == {"description": "old", "closed": True}


def test_analysts_see_the_datasets_on_which_they_have_a_budget(ledger: Ledger) -> None:
    def seen(name: str) -> list[Dataset]:
        return ledger.datasets.all(holders=(name.lower(),), after="", limit=100)

    assert [d.id for d in seen(ledger.analysts[0].name)] == [ledger.dataset.id]
    assert seen("nobody") == []
    name = ledger.dataset.name
    assert ledger.datasets.find(name, ("nobody", EVERYBODY)).id == ledger.dataset.id
    for unseen in (name, "no such dataset"):
        with pytest.raises(NotFound, match="no dataset of this name"):
            ledger.datasets.find(unseen, ("nobody",))


# Budgets


def test_a_grant_is_an_entry_with_limits_before_and_after(ledger: Ledger) -> None:
    name = ledger.analysts[0].name
    account, new = ledger.grant(name, tenths=25)
    assert not new
    said = last_entry(ledger, ledger.dataset.book_id)
    assert said["body"]["before"]["terms"]["epsilon"] == 10 * TENTH
    assert said["body"]["after"]["terms"]["epsilon"] == 25 * TENTH
    assert account.version == 2
    assert ledger.verified().sound


def seen(version: int) -> Precondition:
    return Precondition(Versions(frozenset([version])))


def test_a_budget_changes_only_if_the_precondition_matches(ledger: Ledger) -> None:
    name = ledger.analysts[0].name
    before = ledger.everything()
    for precondition in (seen(7), MUST_BE_NEW):
        with pytest.raises(PreconditionFailed):
            ledger.grant(name, tenths=99, precondition=precondition)
    assert ledger.everything() == before
    account, _ = ledger.grant(name, tenths=99, precondition=seen(1))
    assert account.version == 2
    ledger.charge(ledger.order())
    with pytest.raises(PreconditionFailed):
        ledger.grant(name, tenths=5, precondition=seen(2))  # the charge changed the budget


def test_a_limit_below_the_spend_blocks_charges_and_rewrites_nothing(ledger: Ledger) -> None:
    name = ledger.analysts[0].name
    ledger.charge(ledger.order(tenths=6))
    account, _ = ledger.grant(name, tenths=2)
    assert account.frozen
    assert account.balance.common == (6 * TENTH, 0)
    assert account.balances()["remaining"] == {"epsilon": 0.0, "delta": 0.0}
    (refusal,) = ledger.settle(ledger.order())
    assert isinstance(refusal, AppError)
    ledger.grant(name, tenths=7)
    ledger.charge(ledger.order())
    assert ledger.spent() == 7


def test_spend_converts_to_another_currency_but_never_back(ledger: Ledger) -> None:
    name = ledger.analysts[0].name
    ledger.grant(name, tenths=5, currency="approximate", delta="1e-6")
    ledger.grant(name, tenths=5)
    ledger.charge(ledger.order())
    ledger.grant(name, tenths=5, currency="approximate", delta="1e-6")
    assert ledger.verified().sound
    ledger.grant(name, tenths=5, currency="renyi", delta="1e-6")
    assert ledger.verified().sound
    for currency in ("pure", "approximate", "zcdp"):
        delta = "0" if currency == "pure" else "1e-6"
        with pytest.raises(Conflict, match="cannot be converted"):
            ledger.grant(name, tenths=5, currency=currency, delta=delta)
    with pytest.raises(Conflict, match="keeps its delta"):
        ledger.grant(name, tenths=5, currency="renyi", delta="1e-7")
    assert ledger.verified().sound


def test_the_next_page_starts_where_the_last_one_ended(ledger: Ledger) -> None:
    for _ in range(3):
        ledger.charge(ledger.order())
    analyst = ledger.analysts[0].id
    whole = ledger.history.asked(analyst_id=analyst, after=None, limit=10)
    assert [asked.id for asked in whole] == sorted((a.id for a in whole), reverse=True)
    rest = ledger.history.asked(analyst_id=analyst, after=whole[0].id, limit=10)
    assert rest == whole[1:]
    assert ledger.history.asked(analyst_id=ledger.analysts[1].id, after=None, limit=10) == []
    with pytest.raises(NotFound):
        ledger.history.one(whole[0].id, analyst_id=ledger.analysts[1].id)
    budgets = ledger.budgets.all(holders=(EVERYBODY,), after="", limit=1000)
    assert ledger.budgets.all(holders=(EVERYBODY,), after=budgets[0][0], limit=1000) == budgets[1:]


def test_entries_of_all_books_come_in_order_of_time(ledger: Ledger) -> None:
    for who in (0, 1):
        ledger.charge(ledger.order(who=who))
    position = (0, "", 0)
    seen: list[tuple[int, str, int]] = []
    while page := ledger.history.entries(book_id=None, after=position, limit=3):
        seen += [(entry.at, entry.book_id, entry.seq) for entry in page]
        position = seen[-1]
    assert seen == sorted(seen)
    assert len(seen) == len(ledger.everything()["entries"])
