"""Private keys in the action: read in batches under the charge; failures reveal nothing."""

import json
from collections.abc import Generator
from decimal import Decimal
from typing import Any

import pytest
from typing_extensions import override

from app.actions.asking.charge import FORFEITED
from app.data.card import Card, Dataset
from app.errors import EngineFailed, QuestionForfeited
from app.ledger.account import EVERYBODY
from app.mechanisms.private_keys.keys_release import first_keys
from app.queries.tally import KeyBatch, KeyCountsRequest
from tests.actions.asking.faulty_engine import FaultyEngine
from tests.actions.service import Service

SECRET = "planted-note-5d2c"
NOTES = ["flu"] * 90 + ["gout"] * 80 + [SECRET]
HISTOGRAM: dict[str, Any] = {"kind": "histogram", "column": "note"}
CARD = Card.model_validate(
    {
        "person": {"kind": "row"},
        "neighbours": "add_remove",
        "columns": [{"name": "note", "type": "text"}],
    }
)


@pytest.fixture
def notes(service: Service) -> Service:
    """The service with a dataset of notes, on which Ann may spend 2 and a delta of 1e-3."""
    path = service.file.with_name("notes.csv")
    path.write_text("\n".join(["note", *NOTES]) + "\n")
    service.register("notes", path="notes.csv", card=CARD)
    for holder in (EVERYBODY, "ann"):
        service.grant(holder, "2", delta=Decimal("1e-3"), dataset="notes", currency="approximate")
    return service


def ask(service: Service, query: dict[str, Any] = HISTOGRAM, **more: Any) -> dict[str, Any]:
    privacy = {"epsilon": "1", "delta": "1e-6"}
    shown: dict[str, Any] = json.loads(
        service.ask(query, dataset="notes", privacy=privacy, **more).text
    )
    return shown


def spent(service: Service) -> tuple[int, ...]:
    found = service.stores.budgets.all(holders=("ann",), after="", limit=10)
    (account,) = (each.account for _, each in found if each.dataset == "notes")
    return tuple(account.balance.common)


class Failing(FaultyEngine):
    """An engine that returns one batch and then raises the fault."""

    @override
    def keys(self, dataset: Dataset, wanted: KeyCountsRequest) -> Generator[KeyBatch]:
        self.asked += 1
        yield [(0, SECRET, 1), (0, "flu", 90)]
        assert isinstance(self._fault, BaseException)
        raise self._fault


def test_keys_are_read_released_and_charged(notes: Service) -> None:
    """A larger error, or another released key, has a probability below 1e-6."""
    answer = ask(notes)
    assert [group["group"] for group in answer["value"]] == [{"note": "flu"}, {"note": "gout"}]
    epsilon, delta = spent(notes)
    assert epsilon == 10**12
    assert 0 < delta < 10**12
    assert SECRET not in json.dumps(answer)
    assert notes.sound()


@pytest.mark.parametrize("fault", [EngineFailed("no"), ValueError(SECRET)], ids=["own", "other"])
def test_a_failure_between_batches_forfeits_the_charge_and_reveals_nothing(
    notes: Service, fault: Exception
) -> None:
    failing = Failing(notes, fault)
    notes.answer_query.engines = notes.answer_query.readiness.engines = failing
    for _ in range(2):  # permanently
        with pytest.raises(QuestionForfeited) as failed:
            ask(notes, key="k")
        assert failed.value.detail == FORFEITED
    assert failing.asked == 1
    assert spent(notes)[0] == 10**12
    assert notes.sound()


def test_keys_are_not_cached_so_a_fresh_question_reads_again(notes: Service) -> None:
    first = ask(notes)
    again = ask(notes, fresh=True)
    assert first["id"] != again["id"]
    assert spent(notes)[0] == 2 * 10**12


def test_an_answer_holds_the_first_keys_in_order_with_little_memory() -> None:
    keys = [(place, text, 5) for place in (1, 0) for text in "zaébß"]
    assert first_keys(iter(keys), most=3) == [(0, "a", 5), (0, "b", 5), (0, "z", 5)]
    assert first_keys(iter(keys), most=100) == sorted(keys)
    assert first_keys(iter(())) == []
    many = ((0, f"{i:07}", 1) for i in range(300_000, 0, -1))
    kept = first_keys(many)
    assert (len(kept), kept[0][1], kept[-1][1]) == (100_000, "0000001", "0100000")
