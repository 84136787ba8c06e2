"""Lost spend is booked before a restored ledger charges again (I36, D4)."""

import shutil
from decimal import Decimal
from pathlib import Path

import pytest

from tests.conftest import Template
from tests.end_to_end.crashes.rollback.copies import (
    Copies,
    account_lines,
    on_postgres,
    refused,
    spend,
)
from tests.postgres import PostgresServer
from tests.server import World, ask, card, count, exact, made, new_key

pytestmark = pytest.mark.invariant("I36")


def test_data_whose_whole_book_was_lost_get_their_old_loss_back(
    world: World, copies: Copies
) -> None:
    world.server  # noqa: B018  # started
    world.ledger.stop()
    backup = copies.take()
    world.serve()
    path = world.write_csv([[30, 10, "north", "true", "2021-01-01"]] * 5)
    dataset = world.dataset(path)
    world.grant(dataset, "*", 10)
    world.grant(dataset, "ada", 2)
    spend(world.client("ada"), "0.75", dataset=dataset)
    world.ledger.stop()
    copies.restore(backup)
    world.serve()
    refused(world.admin.post("/v1/datasets", json=card(path)))
    made(world.admin.post("/v1/ledger/reconcile", json={"reason": "r"}))
    again = world.dataset(path)
    assert world.spent(again, "ada") == Decimal("0.75")
    assert world.spent(again, "*") == Decimal("0.75")
    assert exact(world.budget(again, "ada")["limit"]) == 2
    spend(world.client("ada"), "0.25", dataset=again)
    assert world.spent(again, "*") == 1
    world.must_be_sound()


def test_every_server_books_the_losses_of_its_own_anchors(
    peopled: Template, postgres: PostgresServer, tmp_path: Path
) -> None:
    """Each of two servers has its own home.

    The second starts only after the first has booked the loss it knew. It adds the loss that only
    its own anchors hold.
    """
    world, copies = on_postgres(peopled, postgres, tmp_path)
    ada = world.people["ada"].key
    try:
        homes = [str(tmp_path / name) for name in ("one", "two")]
        for home in homes:
            spend(world.serve(BURSAR_HOME=home).client(ada), "0.1")
        world.ledger.stop()
        backup = copies.take()
        one, two = (world.ledger.serve(BURSAR_HOME=home) for home in homes)
        for server, epsilon in ((one, "0.01"), (two, "0.02"), (one, "0.03"), (two, "0.04")):
            spend(server.client(ada), epsilon)
        world.ledger.stop()
        copies.restore(backup)

        world.serve(BURSAR_HOME=homes[0])
        refused(ask(world.client("ada"), count("people", "0.1", fresh=True), new_key()))
        made(world.admin.post("/v1/ledger/reconcile", json={"reason": "one"}))
        assert world.spent("people", "ada") == Decimal("0.26"), "the loss up to its own last charge"
        spend(world.client("ada"), "0.001")

        second = world.ledger.serve(BURSAR_HOME=homes[1])
        assert "behind" in second.output()
        question = count("people", "0.001", fresh=True)
        refused(ask(second.client(ada), question, new_key()))
        refused(ask(world.client("ada"), question, new_key()))
        made(world.admin.post("/v1/ledger/reconcile", json={"reason": "two"}))
        assert world.spent("people", "ada") == world.spent("people", "*") == Decimal("0.301")
        spend(second.client(ada), "0.001")
        spend(world.client("ada"), "0.001")
        world.must_be_sound()
        world.ledger.stop()
        for home in homes:
            assert "behind" not in world.serve(BURSAR_HOME=home).output()
    finally:
        world.ledger.stop()


def test_lost_spend_of_cells_and_curves_is_booked_on_the_same_cells_and_curves(
    world: World, copies: Copies
) -> None:
    dataset = world.dataset(cells={"column": "region"})
    wish = {"currency": "renyi", "epsilon": 5, "delta": 1e-6}
    for holder in ("*", "ada"):
        made(world.admin.put(f"/v1/datasets/{dataset}/budgets/{holder}", json=wish))

    def ask_region(region: str) -> None:
        where = {"column": "region", "op": "==", "value": region}
        body = count(dataset, 0.1, fresh=True) | {"query": {"kind": "count", "where": where}}
        made(ask(world.client("ada"), body, new_key()))

    ask_region("north")
    world.ledger.stop()
    backup = copies.take()
    world.serve()
    ask_region("north")
    ask_region("south")
    spend(world.client("ada"), "0.2", dataset=dataset)
    before = account_lines(world, dataset)
    world.ledger.stop()
    copies.restore(backup)
    world.serve()
    assert account_lines(world, dataset) != before
    made(world.admin.post("/v1/ledger/reconcile", json={"reason": "r"}))
    assert account_lines(world, dataset) == before
    world.must_be_sound()
    ask_region("south")
    world.must_be_sound()


def test_a_lost_spend_follows_data_registered_again_before_the_rollback_was_noticed(
    world: World, copies: Copies
) -> None:
    world.server  # noqa: B018  # started
    world.ledger.stop()
    backup = copies.take()
    world.serve()
    path = world.write_csv([[31, 11, "south", "true", "2021-01-02"]] * 5)
    dataset = world.dataset(path)
    world.grant(dataset, "*", 10)
    world.grant(dataset, "ada", 2)
    spend(world.client("ada"), "0.75", dataset=dataset)
    world.ledger.stop()
    anchors, aside = world.ledger.home / "anchors", world.ledger.home / "aside"
    anchors.rename(aside)
    copies.restore(backup)
    world.serve()
    again = world.dataset(path)
    world.grant(again, "*", 10)
    world.grant(again, "ada", 2)
    spend(world.client("ada"), "0.25", dataset=again)
    for file in aside.glob("*/*.anchor"):
        shutil.copy(file, anchors / file.parent.name)
    assert not made(world.admin.get("/v1/ledger/verify"))["sound"]
    made(world.admin.post("/v1/ledger/reconcile", json={"reason": "r"}))
    assert world.spent(again, "ada") == world.spent(again, "*") == 1
    world.must_be_sound()


def test_a_lost_change_of_currency_is_restored(world: World, copies: Copies) -> None:
    spend(world.client("ada"), "0.1")
    world.ledger.stop()
    backup = copies.take()
    world.serve()
    wish = {"currency": "renyi", "epsilon": 5, "delta": 1e-6}
    made(world.admin.put("/v1/datasets/people/budgets/ada", json=wish))
    spend(world.client("ada"), "0.2")
    before = [line for line in account_lines(world, "people") if '"holder":"ada"' in line]
    world.ledger.stop()
    copies.restore(backup)
    world.serve()
    made(world.admin.post("/v1/ledger/reconcile", json={"reason": "r"}))
    after = [line for line in account_lines(world, "people") if '"holder":"ada"' in line]
    assert after == before, "the account has its lost terms again"
    assert world.spent("people", "*") == Decimal("0.3")
    world.must_be_sound()
    spend(world.client("ada"), "0.1")
    world.must_be_sound()
