"""A ledger restored from an older copy is noticed, and charges nothing (I36, D4)."""

import shutil
from decimal import Decimal
from pathlib import Path

import httpx
import pytest

from tests.conftest import Template
from tests.end_to_end.crashes.rollback.copies import Copies, on_postgres, refused, restart, spend
from tests.postgres import PostgresServer
from tests.server import (
    World,
    above_threshold,
    ask,
    ask_stream,
    ask_until_settled,
    count,
    made,
    new_key,
    open_stream,
)

pytestmark = pytest.mark.invariant("I36")


def test_a_restored_ledger_is_noticed_and_charges_again_once_the_lost_spend_is_booked(
    world: World, copies: Copies
) -> None:
    spend(world.client("ada"), "0.1", 2)
    spend(world.client("bob"), "0.05")
    before_entries = len(world.entries("people"))
    world.ledger.stop()
    backup = copies.take()
    world.serve()
    key = new_key()
    lost = made(ask(world.client("ada"), count("people", "0.2", fresh=True), key))
    restart(world)  # the copy is older than the last start
    spend(world.client("bob"), "0.07", 3)
    world.ledger.stop()
    copies.restore(backup)
    server = world.serve()
    assert "behind its anchors" in server.output()

    refused(ask(world.client("ada"), count("people", "0.1", fresh=True), new_key()))
    refused(ask(world.client("ada"), count("people", "0.2", fresh=True), key))
    refused(open_stream(world.client("ada"), above_threshold("people", "0.1")))
    assert len(world.entries("people")) == before_entries, "reads work, and nothing was written"
    assert world.spent("people", "ada") == Decimal("0.2")
    report = made(world.admin.get("/v1/ledger/verify"))
    assert not report["sound"]
    assert report["anchors"]["stopped"]
    assert any("anchor has seen" in finding["problem"] for finding in report["findings"])
    ran = world.ledger.bursard("verify", check=False)
    assert ran.returncode == 1
    assert "behind its anchors" in ran.stdout

    assert world.client("ada").post("/v1/ledger/reconcile", json={"reason": "r"}).status_code == 403
    assert world.admin.post("/v1/ledger/reconcile", json={}).status_code == 422
    booked = made(world.admin.post("/v1/ledger/reconcile", json={"reason": "disk died"}))
    assert booked["accounts"] == 3
    assert world.spent("people", "ada") == Decimal("0.4")
    assert world.spent("people", "bob") == Decimal("0.26")
    assert world.spent("people", "*") == Decimal("0.66")
    (entry,) = world.entries("people", "reconciled")
    assert (entry["actor"], entry["body"]["reason"]) == ("admin", "disk died")
    for change in entry["body"]["accounts"]:
        assert change["before"]["spent"] < change["after"]["spent"]

    world.must_be_sound()
    again = made(ask(world.client("ada"), count("people", "0.2", fresh=True), key))
    assert again["id"] != lost["id"]
    assert world.spent("people", "ada") == Decimal("0.6"), (
        "the lost spend counts, and the new charge"
    )
    assert ask(world.client("ada"), count("people", "0.5"), new_key()).status_code == 402
    assert world.admin.post("/v1/ledger/reconcile", json={"reason": "r"}).status_code == 409
    for _ in range(3):  # anchors of the lost entries do not count as new ones
        restart(world)
        assert "behind" not in world.server.output()
        spend(world.client("ada"), "0.01")
        world.must_be_sound()


def test_verify_notices_a_restored_ledger_and_stops_a_running_server(
    world: World, copies: Copies
) -> None:
    """The running server was started on the restored copy, with a home without anchors."""
    spend(world.client("ada"), "0.1")
    world.ledger.stop()
    backup = copies.take()
    world.serve()
    spend(world.client("ada"), "0.1")
    world.ledger.stop()
    anchors = world.ledger.home / "anchors"
    anchors.rename(world.ledger.home / "aside")
    copies.restore(backup)
    server = world.serve()
    assert "behind" not in server.output()
    spend(world.client("ada"), "0.03")
    for path in (world.ledger.home / "aside").glob("*/*.anchor"):
        shutil.copy(path, anchors / path.parent.name)
    ran = world.ledger.bursard("verify", check=False)
    assert ran.returncode == 1
    assert "behind its anchors" in ran.stdout
    refused(ask(world.client("ada"), count("people", "0.1", fresh=True), new_key()))
    done = world.ledger.bursard("reconcile", "--reason", "found by the auditor")
    assert "Charging is resumed" in done.stdout
    spend(world.client("ada"), "0.01")
    assert world.spent("people", "ada") == Decimal("0.24"), "0.1, the lost 0.1, 0.03 and 0.01"
    world.must_be_sound()


def test_charging_cannot_be_resumed_by_an_edit_of_its_row(world: World, copies: Copies) -> None:
    """The entries decide: the restored ledger stops again, and verify names the edit."""
    spend(world.client("ada"), "0.1")
    world.ledger.stop()
    backup = copies.take()
    world.serve()
    spend(world.client("ada"), "0.1", 3)
    world.ledger.stop()
    copies.restore(backup)
    world.serve()
    refused(ask(world.client("ada"), count("people", "0.1", fresh=True), new_key()))
    edit = "UPDATE installation SET standing = standing + 1"
    world.ledger.change(edit)
    report = made(world.admin.get("/v1/ledger/verify"))  # on the running server
    assert report["anchors"]["stopped"]
    problems = [finding["problem"] for finding in report["findings"]]
    assert any("disagree on whether charging is stopped" in problem for problem in problems)
    refused(ask(world.client("ada"), count("people", "0.1", fresh=True), new_key()))
    world.ledger.stop()
    world.ledger.change(edit)
    server = world.serve()
    assert "behind its anchors" in server.output()
    refused(ask(world.client("ada"), count("people", "0.1", fresh=True), new_key()))
    made(world.admin.post("/v1/ledger/reconcile", json={"reason": "restored"}))
    assert world.spent("people", "ada") == Decimal("0.4")
    world.must_be_sound()
    world.ledger.change(edit)
    report = made(world.admin.get("/v1/ledger/verify"))
    assert not report["sound"]


def test_answers_lost_without_their_charges_are_never_drawn_again(
    world: World, copies: Copies
) -> None:
    """The copy dates from between charge and answer: the open charge is forfeited."""
    person = world.people["ada"]
    world.serve(fault="F4=kill", lease_seconds=1)
    key = new_key()
    with pytest.raises(httpx.TransportError):
        ask(world.client(person), count("people", "0.1"), key)
    world.server.wait_dead()
    backup = copies.take()
    world.serve(lease_seconds=1)
    first = made(ask_until_settled(world.client(person), count("people", "0.1"), key))
    restart(world)  # writes the anchors anew
    world.ledger.stop()
    copies.restore(backup)
    world.serve(lease_seconds=1)
    refused(ask(world.client(person), count("people", "0.1", fresh=True), new_key()))
    refused_again = ask(world.client(person), count("people", "0.1"), key)
    assert refused_again.status_code in (409, 503)
    booked = made(world.admin.post("/v1/ledger/reconcile", json={"reason": "r"}))
    assert booked["forfeited"] == 1
    reply = ask(world.client(person), count("people", "0.1"), key)
    assert reply.status_code == 503
    assert reply.json()["type"] == "/problems/question-forfeited"
    assert first["value"] is not None
    assert world.spent("people", "ada") == Decimal("0.1")
    world.must_be_sound()


def test_streams_of_a_restored_ledger_are_closed(world: World, copies: Copies) -> None:
    client = world.client("ada")
    stream = made(open_stream(client, above_threshold("people", "0.2", crossings=3)))["id"]
    made(ask_stream(client, stream))
    world.ledger.stop()
    backup = copies.take()
    world.serve()
    made(ask_stream(world.client("ada"), stream))
    world.ledger.stop()
    copies.restore(backup)
    world.serve()
    refused(ask_stream(world.client("ada"), stream))
    booked = made(world.admin.post("/v1/ledger/reconcile", json={"reason": "r"}))
    assert booked["streams_closed"] == 1
    reply = ask_stream(world.client("ada"), stream)
    assert reply.status_code == 409
    assert reply.json()["type"] == "/problems/stream-ended"
    world.must_be_sound()


def test_a_running_server_notices_a_restored_ledger(
    peopled: Template, postgres: PostgresServer, tmp_path: Path
) -> None:
    """The same happens after a failover to a standby that lacks the last commits."""
    world, copies = on_postgres(peopled, postgres, tmp_path)
    try:
        spend(world.client("ada"), "0.1")
        world.ledger.stop()
        backup = copies.take()
        client = world.serve().client(world.people["ada"].key)
        spend(client, "0.1", 2)
        copies.restore(backup)
        refused(ask(client, count("people", "0.1", fresh=True), new_key()))
        assert not made(world.admin.get("/v1/ledger/verify"))["sound"]
        made(world.admin.post("/v1/ledger/reconcile", json={"reason": "failover"}))
        assert world.spent("people", "ada") == Decimal("0.3")
        spend(client, "0.1", 3)
        world.must_be_sound()
        for _ in range(2):
            restart(world)
            assert "behind" not in world.server.output()
        world.must_be_sound()
    finally:
        world.ledger.stop()
