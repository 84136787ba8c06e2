"""Servers and data that vanish, and what must hold afterwards."""

import signal
from decimal import Decimal

import httpx
import pytest

from tests.bursard import Ledger
from tests.server import World, ask_until_settled, count

PRICE = Decimal("0.25")
LEASE_SECONDS = 0.3  # short, so that a restarted server finds it expired
QUESTION = count("people", float(PRICE))


def stored(ledger: Ledger) -> list[tuple[str, str | None]]:
    """State and answer of every charge in the database."""
    return [(row[0], row[1]) for row in ledger.rows("SELECT state, answer FROM charges")]


def lose_a_server(world: World, fault: str, request_key: str, *, once: bool = True) -> None:
    """Ask a server that is killed before it answers."""
    armed = world.serve(fault=f"{fault}=kill", once=once, lease_seconds=LEASE_SECONDS)
    with pytest.raises(httpx.TransportError):
        ask_until_settled(world.client("ada"), QUESTION, request_key)
    assert armed.wait_dead() == -signal.SIGKILL


def lose_the_data(world: World, *, source: bool) -> None:
    """Damage the prepared version, or remove it and its source file."""
    versions = list((world.ledger.home / "versions").glob("*.duckdb"))
    assert versions
    for version in versions:
        version.unlink()
        if not source:
            version.write_bytes(b"this is no database" * 1000)
    if source:
        for file in world.ledger.data.iterdir():
            file.rename(file.with_suffix(".gone"))


def find_the_data(world: World) -> None:
    for file in world.ledger.data.iterdir():
        file.rename(file.with_suffix(".csv"))


def must_fail_alike(world: World, request_key: str, problem: str) -> str:
    """Check that every repeat of the key returns the same bytes; return the charge's id."""
    client = world.client("ada")
    replies = [ask_until_settled(client, QUESTION, request_key) for _ in range(3)]
    assert {reply.status_code for reply in replies} == {503}, replies[0].text
    assert {reply.json()["type"] for reply in replies} == {f"/problems/{problem}"}
    assert len({reply.content for reply in replies}) == 1
    return str(replies[0].json()["id"])


def must_have_one_charge(world: World) -> None:
    assert len(world.entries("people", "charge")) == 1
    assert world.entries("people", "void") == []
    assert world.spent("people", "ada") == world.spent("people", "*") == PRICE
    world.must_be_sound()
