"""The snapshot a connection keeps after a batch: it saves reads, and a stale one is harmless."""

from collections.abc import Callable
from typing import Any

import pytest

from app.data.card import Card
from app.errors import BudgetExhausted
from app.ledger.account import EVERYBODY
from app.ledger.orders import (
    Charged,
    ChargeOrder,
    PreparedAnswer,
    RecordOrder,
    Settled,
    StaleCatalogue,
    State,
)
from app.store.writer import snapshot as known_module
from app.store.writer.snapshot import MARGIN_MICROSECONDS
from app.store.writer.statements import CLOCK_LATE_MAX
from tests.store.ledgers import CELLED, Ledger, register
from tests.store.writer.snapshot.snapshot_server import Server
from tests.store.writer.test_prepared_answers import Draws


def test_a_server_with_a_snapshot_does_not_read_first(
    ledger: Ledger, servers: tuple[Server, Server]
) -> None:
    _, server = servers
    for done in range(1, 4):
        results = server.settle(ledger.order(), ledger.order(who=1))
        assert [type(result) for result in results] == [Charged, Charged]
        # the first charge, and the second analyst who was not in the snapshot
        assert server.asked == 2
        assert (ledger.spent(0), ledger.spent(1), ledger.spent(None)) == (
            2 + done,
            done,
            2 + 2 * done,
        )
    assert ledger.verified().sound


def test_charges_by_another_server_count(ledger: Ledger, servers: tuple[Server, Server]) -> None:
    one, other = servers
    for _ in range(4):
        for server in (one, other):
            (charge,) = server.settle(ledger.order())
            assert isinstance(charge, Charged)
    (refused,) = one.settle(ledger.order())
    assert isinstance(refused, BudgetExhausted)
    assert ledger.spent(0) == 10
    assert ledger.verified().sound


def test_a_snapshot_forgets_accounts_that_were_not_read_again(
    ledger: Ledger, servers: tuple[Server, Server]
) -> None:
    """A book's new chain head does not confirm accounts read under an earlier head."""
    one, other = servers
    for _ in range(3):
        assert isinstance(other.settle(ledger.order())[0], Charged)
        assert isinstance(one.settle(ledger.order(who=1))[0], Charged)
        assert isinstance(one.settle(ledger.order())[0], Charged)
        assert isinstance(other.settle(ledger.order(who=1))[0], Charged)
        assert ledger.verified().sound
    assert (ledger.spent(0), ledger.spent(1), ledger.spent(None)) == (8, 6, 14)


def test_a_budget_changed_by_another_server_counts(
    ledger: Ledger, servers: tuple[Server, Server]
) -> None:
    _, server = servers
    ledger.grant(ledger.analysts[0].name, tenths=2)
    (refused,) = server.settle(ledger.order())
    assert isinstance(refused, BudgetExhausted)
    ledger.grant(ledger.analysts[0].name, tenths=3)
    assert isinstance(server.settle(ledger.order())[0], Charged)
    ledger.grant(EVERYBODY, tenths=3)
    ledger.grant(ledger.analysts[0].name, tenths=10)
    (refused,) = server.settle(ledger.order())
    assert isinstance(refused, BudgetExhausted)
    assert refused.members["account"] == EVERYBODY
    assert ledger.spent() == 3


def test_a_refund_by_another_server_may_be_spent(
    ledger: Ledger, servers: tuple[Server, Server]
) -> None:
    one, other = servers
    order = ledger.order(tenths=8)
    assert isinstance(one.settle(order)[0], Charged)
    assert isinstance(one.settle(ledger.order())[0], BudgetExhausted)
    other.settle(ledger.void(order))
    assert isinstance(one.settle(ledger.order(tenths=8))[0], Charged)
    assert ledger.spent() == 10


def test_a_charge_planned_on_an_outdated_catalogue_is_planned_again(
    ledger: Ledger, servers: tuple[Server, Server]
) -> None:
    _, server = servers
    order = ledger.order()
    register(ledger.datasets, f"another than {ledger.dataset.name}")
    before = ledger.everything()
    assert server.settle(order) == [StaleCatalogue(ledger.catalogue())]
    assert ledger.everything() == before


@pytest.mark.parametrize("error", [-CLOCK_LATE_MAX, MARGIN_MICROSECONDS + 50_000])
def test_a_wrong_clock_is_read_again(
    ledger: Ledger, servers: tuple[Server, Server], error: int
) -> None:
    if ledger.database.is_sqlite:
        return  # all SQLite connections share one clock and read it each time
    _, server = servers
    server.mistake_the_clock(error)
    reads_before = server.asked
    (charge,) = server.settle(ledger.order())
    assert isinstance(charge, Charged)
    assert server.asked == reads_before + 1
    assert isinstance(server.settle(ledger.order())[0], Charged)
    assert server.asked == reads_before + 1


def test_a_key_answered_by_another_server_returns_its_answer(
    ledger: Ledger, servers: tuple[Server, Server]
) -> None:
    """This holds even if the budget is spent, so that nothing would be inserted."""
    one, other = servers
    draws = Draws()
    order = ledger.order(tenths=7)._replace(at_once=PreparedAnswer(draws, 0.0))
    (settled,) = one.settle(order)
    assert isinstance(other.settle(ledger.order())[0], Charged)
    for change in ({}, {"at_once": None}):
        (again,) = other.settle(order._replace(charge_id="q_another", **change))  # type: ignore[arg-type]
        assert isinstance(settled, Settled)
        assert again == settled._replace(replayed=True)
    assert isinstance(other.settle(ledger.order())[0], BudgetExhausted)
    assert ledger.spent() == 10
    assert ledger.state(order) == (State.ANSWERED, settled.answer)  # type: ignore[union-attr]


def test_an_answer_of_another_server_is_reused(
    ledger: Ledger, servers: tuple[Server, Server]
) -> None:
    one, other = servers
    order = ledger.order(tenths=2)
    one.settle(order)
    one.settle(RecordOrder(order.charge_id, 1, "an answer"))
    for _ in range(2):
        (reused,) = other.settle(ledger.order(tenths=2, fresh=False))
        assert reused == Settled(order.charge_id, State.ANSWERED, "an answer", reused=True)
    assert ledger.spent() == 4


def test_a_new_reusable_question_needs_no_read(
    ledger: Ledger, servers: tuple[Server, Server]
) -> None:
    _, server = servers
    reads_before = server.asked
    assert isinstance(server.settle(ledger.order(tenths=3, fresh=False))[0], Charged)
    assert server.asked == reads_before
    assert isinstance(server.settle(ledger.order(tenths=3, fresh=False))[0], Charged)
    assert server.asked == reads_before + 1


def test_after_a_wrong_guess_some_batches_read_first(
    ledger: Ledger, servers: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_module, "DOUBTED", 2)
    one, _ = servers  # the other server has charged since
    asked = one.asked
    for expected in (1, 2, 3, 3):
        assert isinstance(one.settle(ledger.order())[0], Charged)
        assert one.asked == asked + expected


# Orders planned before their book had cells


def on_cells(ledger: Ledger) -> Callable[..., ChargeOrder]:
    """Register the same rows under a name that declares cells, and return how to charge the first
    cell.
    """
    name = ledger.dataset.name
    content, place = f"rows of {name}", f"{name}.csv"
    given = {"content": content, "place": place, "card": Card.model_validate(CELLED)}
    celled = register(ledger.datasets, f"{name} by city", **given)
    assert celled.book_id == ledger.dataset.book_id
    named: dict[str, Any] = {
        "dataset_id": celled.id,
        "dataset_name": celled.name,
        "version_id": celled.version.id,
    }
    return lambda **more: ledger.order(cells=(0,), **named, **more)


@pytest.mark.parametrize("first", [0, 1])
def test_a_stale_order_puts_nothing_wrong_about_cells_in_the_snapshot(
    ledger: Ledger, servers: tuple[Server, Server], first: int
) -> None:
    one, _ = servers
    stale = ledger.order()
    on_cell = on_cells(ledger)
    assert isinstance(servers[first].settle(on_cell(tenths=8))[0], Charged)
    assert isinstance(one.settle(stale)[0], StaleCatalogue)
    assert isinstance(one.settle(on_cell(tenths=8))[0], BudgetExhausted)
    assert ledger.verified().sound


def test_a_refunded_charge_puts_nothing_wrong_about_cells_in_the_snapshot(
    ledger: Ledger, servers: tuple[Server, Server]
) -> None:
    one, _ = servers
    early = ledger.order()
    assert isinstance(one.settle(early)[0], Charged)
    on_cell = on_cells(ledger)
    assert isinstance(one.settle(on_cell(tenths=7))[0], Charged)
    one.settle(ledger.void(early))
    assert isinstance(one.settle(on_cell(tenths=7))[0], BudgetExhausted)
    assert ledger.verified().sound
