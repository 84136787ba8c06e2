"""The commands of the guide, one after the other: back up, lose the server, restore, reconcile."""

import secrets
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from tests.conftest import Template
from tests.operations.guide import command, shell
from tests.postgres import PostgresServer, find_binaries
from tests.server import World, ask, count, made, new_key

LOST = Decimal("0.125")  # charged after the backup
SPENT = Decimal("0.25")


@pytest.fixture
def fresh_server() -> Iterator[PostgresServer]:
    """A server that has seen nothing of the old one."""
    server = PostgresServer.start(fsync=True)
    yield server
    server.stop()


@pytest.fixture
def backed_up(peopled: Template, tmp_path: Path) -> Iterator[World]:
    """A ledger that was backed up while it served, and charged once more afterwards."""
    if not (find_binaries() / "pg_dump").exists():
        pytest.skip("this PostgreSQL has no pg_dump")
    world = peopled("postgresql", tmp_path / "ledger")
    try:
        made(ask(world.client("ada"), count("people", float(SPENT)), new_key()))
        shell(command("A ledger in PostgreSQL", "pg_dump"), world.ledger, tmp_path)
        made(ask(world.client("ada"), count("people", float(LOST)), new_key()))
        world.ledger.stop()
        yield world
    finally:
        world.ledger.stop()


def test_a_restored_ledger_charges_again_once_its_loss_is_booked(
    backed_up: World, fresh_server: PostgresServer, tmp_path: Path
) -> None:
    ledger = backed_up.ledger
    name = f"restored_{secrets.token_hex(8)}"
    fresh_server.create_database(name)
    ledger.database = fresh_server.url(name)
    shell(command("Restore", "pg_restore"), ledger, tmp_path)
    shell(command("Restore", "bursard migrate"), ledger, tmp_path)
    verify = command("Restore", "bursard verify")
    assert "behind its anchors" in shell(verify, ledger, tmp_path, code=1).stdout

    world = World(ledger, backed_up.people)
    assert "behind its anchors" in world.server.output()
    assert world.spent("people", "ada") == SPENT
    refused = ask(world.client("ada"), count("people", 0.01), new_key())
    assert (refused.status_code, refused.json()["type"]) == (503, "/problems/ledger-behind")
    ledger.stop()

    reconcile = command("Restore", "bursard reconcile").replace("TEXT", "'the disk was lost'")
    shell(reconcile, ledger, tmp_path)
    assert shell(verify, ledger, tmp_path).stdout.endswith("sound\n")
    world = World(ledger, backed_up.people)
    assert world.spent("people", "ada") >= SPENT + LOST
    world.grant("people", "ada", 10)
    world.grant("people", "*", 1000)
    made(ask(world.client("ada"), count("people", 0.01), new_key()))
    world.must_be_sound()
