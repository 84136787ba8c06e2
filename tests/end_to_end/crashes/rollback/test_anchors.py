"""Anchors: written with every commit, kept by every server, and compared at the start (I36)."""

import shutil
from decimal import Decimal
from pathlib import Path

import httpx
import pytest

from tests.end_to_end.crashes.rollback.copies import Copies, refused, spend
from tests.server import World, ask, ask_until_settled, count, made, new_key, new_ledger

pytestmark = pytest.mark.invariant("I36")


def test_a_crash_between_a_commit_and_its_anchor_is_no_rollback(world: World) -> None:
    spend(world.client("ada"), "0.1")
    world.ledger.stop()
    world.serve(fault="F3=kill", lease_seconds=1)
    key = new_key()
    with pytest.raises(httpx.TransportError):
        ask(world.client("ada"), count("people", "0.2"), key)
    world.server.wait_dead()
    server = world.serve(lease_seconds=1)
    assert "behind" not in server.output()
    made(ask_until_settled(world.client("ada"), count("people", "0.2"), key))
    spend(world.client("ada"), "0.1")
    assert world.spent("people", "ada") == Decimal("0.4")
    world.must_be_sound()


def test_a_server_killed_many_times_is_never_behind_its_anchors(world: World) -> None:
    for _ in range(3):
        spend(world.client("ada"), "0.01", 5)
        world.server.kill()
        assert "behind" not in world.serve().output()
    world.must_be_sound()


def test_a_home_without_anchors_and_torn_or_foreign_lines_are_no_rollback(world: World) -> None:
    spend(world.client("ada"), "0.1")
    world.ledger.stop()
    anchors = world.ledger.home / "anchors"
    (files,) = [path for path in anchors.iterdir() if path.is_dir()]
    for path in files.glob("*.anchor"):
        with path.open("ab") as file:
            file.write(b'\0\0\0\n{"book":"b_1"}\nnot JSON\n[1]\n{"book":"b_nowhere","seq":9')
    world.serve()
    spend(world.client("ada"), "0.1")
    world.must_be_sound()
    world.ledger.stop()
    shutil.rmtree(anchors)
    world.serve()
    spend(world.client("ada"), "0.1")
    assert world.must_be_sound()["anchors"]["points"] > 0


def test_anchors_of_another_ledger_are_recognized(
    world: World, store_kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A new ledger in the same home is not compared with entries of the old one."""
    spend(world.client("ada"), "0.1")
    world.ledger.stop()
    postgres = request.getfixturevalue("postgres") if store_kind == "postgresql" else None
    ledger = new_ledger(store_kind, tmp_path / "other", world.ledger.data, postgres)
    for path in (world.ledger.home / "anchors").iterdir():
        shutil.copytree(path, ledger.home / "anchors" / path.name)
    other = World(ledger)
    try:
        other.person("ada")
        report = other.must_be_sound()
    finally:
        ledger.stop()
    assert report["not_covered"] == {"anchors of other ledgers": 1}


def test_a_second_anchor_folder_holds_the_same_anchors(
    world: World, copies: Copies, tmp_path: Path
) -> None:
    """It reveals a rollback even if the ledger was restored together with its home."""
    second = tmp_path / "elsewhere"
    world.ledger.stop()
    world.serve(BURSAR_ANCHOR=str(second))
    world.ledger.stop()
    backup = copies.take()
    world.serve(BURSAR_ANCHOR=str(second))
    spend(world.client("ada"), "0.1")
    world.ledger.stop()
    copies.restore(backup)
    shutil.rmtree(world.ledger.home / "anchors")
    world.serve(BURSAR_ANCHOR=str(second))
    refused(ask(world.client("ada"), count("people", "0.1"), new_key()))
    made(world.admin.post("/v1/ledger/reconcile", json={"reason": "r"}))
    assert world.spent("people", "ada") == Decimal("0.1")
    world.must_be_sound()


def test_an_anchor_folder_that_cannot_be_written_stops_the_start(
    world: World, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(RuntimeError, match="BURSAR_ANCHOR"):
        world.ledger.serve(BURSAR_ANCHOR=str(blocked / "below"))


def test_several_workers_share_the_anchors(world: World, copies: Copies) -> None:
    world.ledger.stop()
    world.serve(BURSAR_WORKERS="2")
    for _ in range(6):
        spend(world.client("ada"), "0.01")
    world.must_be_sound()
    world.ledger.stop()
    backup = copies.take()
    world.serve(BURSAR_WORKERS="2")
    for _ in range(8):
        spend(world.client("ada"), "0.01")  # each on its own connection, by any worker
    world.ledger.stop()
    copies.restore(backup)
    world.serve(BURSAR_WORKERS="2")
    for _ in range(3):
        refused(ask(world.client("ada"), count("people", "0.1", fresh=True), new_key()))
    made(world.admin.post("/v1/ledger/reconcile", json={"reason": "r"}))
    assert world.spent("people", "ada") == Decimal("0.14")
    for _ in range(6):
        spend(world.client("ada"), "0.01")
    assert world.spent("people", "ada") == Decimal("0.2")
    world.must_be_sound()


NEWEST = "(SELECT max(id) FROM charges)"
LAST_ENTRY = "kind = 'charge' AND seq = (SELECT max(seq) FROM entries WHERE kind = 'charge')"
TAIL_CUTS = {
    "the last answer made open again": [
        "UPDATE charges SET state = 'charged', answer = NULL, settled_at = NULL, stamp = NULL "
        f"WHERE id = {NEWEST}"
    ],
    # Delete the entry, its row, the spends and the chain head, so that the rest is consistent.
    "the last charge taken out everywhere": [
        f"DELETE FROM entries WHERE {LAST_ENTRY}",
        f"DELETE FROM charges WHERE id = {NEWEST}",
        "UPDATE accounts SET epsilon_spent = epsilon_spent - 100000000000, version = version - 1 "
        "WHERE epsilon_spent > 0",
        "UPDATE books SET seq = seq - 1, head = (SELECT hash FROM entries WHERE book_id = books.id "
        "AND seq = books.seq - 1), last_at = (SELECT at FROM entries WHERE book_id = books.id "
        "AND seq = books.seq - 1) WHERE id = (SELECT book_id FROM entries WHERE kind = 'charge' "
        "LIMIT 1)",
    ],
}


@pytest.mark.invariant("I35")
@pytest.mark.saboteur
@pytest.mark.parametrize("what", TAIL_CUTS)
def test_the_anchor_reveals_a_truncated_tail(world: World, what: str) -> None:
    spend(world.client("ada"), "0.1", 3)
    world.ledger.stop()
    trigger = "entries_no_delete" if world.ledger.database is None else "entries_append_only"
    place = "" if world.ledger.database is None else " ON entries"
    for statement in (f"DROP TRIGGER {trigger}{place}", *TAIL_CUTS[what]):
        world.ledger.change(statement)
    aside = world.ledger.home / "aside"
    (world.ledger.home / "anchors").rename(aside)
    assert "sound" in world.ledger.bursard("verify").stdout, (
        "nothing reveals it without the anchors"
    )
    shutil.rmtree(world.ledger.home / "anchors")
    aside.rename(world.ledger.home / "anchors")
    server = world.serve()
    assert "behind its anchors" in server.output()
    refused(ask(world.client("ada"), count("people", "0.1", fresh=True), new_key()))
    made(world.admin.post("/v1/ledger/reconcile", json={"reason": "somebody cut it"}))
    assert world.spent("people", "ada") == world.spent("people", "*") == Decimal("0.3")
    world.must_be_sound()
