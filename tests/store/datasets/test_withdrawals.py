"""Withdrawal of a dataset name on both stores: only names that were never charged are deleted."""

from collections.abc import Callable

import pytest

from app.actions.datasets.withdraw_dataset import Withdrawal
from app.data.card import Card
from app.errors import Conflict, IdempotencyConflict, NotFound
from app.ledger.verification.verify import verify
from app.store.administration import Administration
from app.store.datasets import withdrawals
from app.store.datasets.old_versions import SqlOldVersions
from tests.queries.cards import card
from tests.store.datasets.withdrawing import (
    OTHER_PERSON,
    again,
    book,
    charge,
    charge_and_void,
    marks,
    withdraw,
)
from tests.store.ledgers import CELLED, Ledger
from tests.store.test_administration import last_entry

# Nothing was charged


def test_a_withdrawal_deletes_name_card_and_fingerprints_and_keeps_the_book(ledger: Ledger) -> None:
    before, book_id = ledger.dataset, ledger.dataset.book_id
    catalogue = ledger.catalogue()
    assert withdraw(ledger, reason="wrong person") is Withdrawal.WITHDRAWN
    with pytest.raises(NotFound):
        ledger.datasets.find(before.name)
    assert marks(ledger) == 0
    assert ledger.catalogue() == catalogue + 1
    said = last_entry(ledger, book_id)
    assert (said["kind"], said["actor"]) == ("dataset_withdrawn", "admin")
    assert said["body"]["dataset"] == before.name
    assert said["body"]["before"]["card"]["person"] == {"kind": "row"}
    assert (said["body"]["after"], said["body"]["reason"]) == (None, "wrong person")
    assert verify(ledger.history.snapshot(book_id)).sound


def test_the_same_data_may_be_registered_with_another_person(ledger: Ledger) -> None:
    with pytest.raises(Conflict):
        again(ledger, name=f"{ledger.dataset.name} too", card=OTHER_PERSON)
    withdraw(ledger)
    corrected = again(ledger, card=OTHER_PERSON)
    assert corrected.name == ledger.dataset.name
    assert corrected.book_id != ledger.dataset.book_id


def test_budgets_of_a_withdrawn_name_pay_for_nothing(ledger: Ledger) -> None:
    withdraw(ledger)
    corrected = again(ledger, card=OTHER_PERSON)
    holders = tuple(analyst.name.lower() for analyst in ledger.analysts)
    with pytest.raises(NotFound):
        ledger.datasets.find(corrected.name, holders)
    shown = {budget.dataset for _, budget in ledger.budgets.all(holders=None, after="", limit=9999)}
    assert ledger.dataset.name not in shown


def test_versions_of_a_withdrawn_name_may_be_deleted_everywhere(ledger: Ledger) -> None:
    old = SqlOldVersions(ledger.database)
    version_id = ledger.dataset.version.id
    assert old.unneeded([version_id, "v_unknown"]) == []
    withdraw(ledger)
    assert old.unneeded([version_id, "v_unknown"]) == [version_id]


def test_withdrawing_one_of_two_names_leaves_the_book_to_the_other(ledger: Ledger) -> None:
    second = again(ledger, name=f"{ledger.dataset.name} too")
    withdraw(ledger)
    assert marks(ledger) > 0
    assert ledger.datasets.find(second.name).book_id == ledger.dataset.book_id
    with pytest.raises(Conflict):
        again(ledger, card=OTHER_PERSON)  # the second name still declares who the person is
    withdraw(ledger, second.name)
    assert marks(ledger) == 0
    again(ledger, card=OTHER_PERSON)


def test_cells_go_with_the_last_name_that_declared_them(ledger_with_cells: Ledger) -> None:
    plain = again(ledger_with_cells, name=f"{ledger_with_cells.dataset.name} too", card=card())
    assert ledger_with_cells.datasets.find(plain.name).celled
    withdraw(ledger_with_cells)
    assert not ledger_with_cells.datasets.find(plain.name).celled


def test_cells_stay_while_another_name_declares_them(ledger_with_cells: Ledger) -> None:
    same = Card.model_validate(CELLED)
    second = again(ledger_with_cells, name=f"{ledger_with_cells.dataset.name} too", card=same)
    withdraw(ledger_with_cells)
    assert ledger_with_cells.datasets.find(second.name).celled


# Something was charged


@pytest.mark.invariant("I29")
@pytest.mark.parametrize("lose", [charge, charge_and_void, book])
def test_a_book_that_was_charged_stays_with_its_data(
    ledger: Ledger, lose: Callable[[Ledger], None]
) -> None:
    lose(ledger)
    spent = ledger.spent(None)
    assert withdraw(ledger) is Withdrawal.CLOSED
    assert ledger.datasets.find(ledger.dataset.name).closed
    assert marks(ledger) > 0
    assert ledger.spent(None) == spent
    said = last_entry(ledger, ledger.dataset.book_id)
    assert (said["kind"], said["body"]["after"]["closed"]) == ("dataset_changed", True)
    with pytest.raises(Conflict):
        again(ledger)  # the name does not return
    with pytest.raises(Conflict):
        again(ledger, name=f"{ledger.dataset.name} too", card=OTHER_PERSON)
    entries = ledger.everything()["entries"]
    assert withdraw(ledger) is Withdrawal.CLOSED  # a second withdrawal changes nothing
    assert ledger.everything()["entries"] == entries
    assert ledger.verified().sound


def test_a_charge_under_another_name_counts_too(ledger: Ledger) -> None:
    second = again(ledger, name=f"{ledger.dataset.name} too")
    charge(ledger)
    assert withdraw(ledger, second.name) is Withdrawal.CLOSED
    assert ledger.datasets.find(second.name).closed
    assert not ledger.datasets.find(ledger.dataset.name).closed


@pytest.mark.invariant("I29")
def test_an_unknown_kind_of_entry_keeps_the_book(ledger: Ledger) -> None:
    with Administration(ledger.database).change() as change:
        change.append(ledger.dataset.book_id, kind="anything_new", actor="admin", body={})
    assert withdraw(ledger) is Withdrawal.CLOSED


# Requests


def test_a_repeated_request_has_the_outcome_of_the_first(ledger: Ledger) -> None:
    assert withdraw(ledger, request="r1", body="b") is Withdrawal.WITHDRAWN
    corrected = again(ledger, card=OTHER_PERSON)
    assert withdraw(ledger, request="r1", body="b") is Withdrawal.WITHDRAWN
    assert ledger.datasets.find(corrected.name).id == corrected.id
    with pytest.raises(IdempotencyConflict):
        withdraw(ledger, request="r1", body="another")


def test_a_repeated_registration_does_not_find_its_successor(ledger: Ledger) -> None:
    withdraw(ledger)
    first = again(ledger, request="made first", body="b")
    assert again(ledger, request="made first", body="b").id == first.id
    withdraw(ledger)
    second = again(ledger, card=OTHER_PERSON)
    assert second.id != first.id
    with pytest.raises(Conflict, match="withdrawn"):
        again(ledger, request="made first", body="b")


def test_an_unknown_name_is_not_found(ledger: Ledger) -> None:
    with pytest.raises(NotFound):
        withdraw(ledger, "nobody's")
    withdraw(ledger)
    with pytest.raises(NotFound):
        withdraw(ledger)


# Saboteurs


def test_verify_finds_a_withdrawal_that_ignored_a_charge(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    charge(ledger)
    monkeypatch.setattr(withdrawals, "_was_charged", lambda *_: False)
    assert withdraw(ledger) is Withdrawal.WITHDRAWN
    report = verify(ledger.history.snapshot(ledger.dataset.book_id))
    assert "it withdraws data for which something was charged" in {
        finding.problem for finding in report.findings
    }


def test_verify_finds_a_charge_after_the_data_were_released(ledger: Ledger) -> None:
    withdraw(ledger)
    ledger.charge(ledger.order())  # under the new catalogue number, as if the check were missing
    report = verify(ledger.history.snapshot(ledger.dataset.book_id))
    assert "it charges data that were withdrawn" in {f.problem for f in report.findings}
