"""Verification finds every way to tamper with rows outside the hash chains (I35)."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import URL, make_url

from app.ledger.verification.report import Report
from app.ledger.verification.verify import verify
from app.store.connect import Database
from app.store.history.history import SqlHistory
from tests.bursard import Ledger
from tests.conftest import STORES, Template
from tests.end_to_end.crashes.tamperings import PREPARED, TAMPERINGS
from tests.server import (
    World,
    above_threshold,
    ask,
    ask_stream,
    count,
    made,
    new_key,
    open_stream,
    running_count,
)

pytestmark = [pytest.mark.invariant("I35"), pytest.mark.saboteur]


@pytest.fixture(scope="module", params=STORES)
def story(
    peopled: Template, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[World]:
    """A ledger with answered, reused, open and refunded charges, streams, and a second book."""
    world = peopled(request.param, tmp_path_factory.mktemp("tampering") / "ledger")
    world.grant("people", "ada", 10)
    ada = world.client("ada")
    for _ in range(3):
        made(ask(ada, count("people", 0.1, fresh=True), new_key()))
    made(ask(ada, count("people", 0.1), new_key()))
    made(ask(world.client("bob"), count("people", 0.1), new_key()))
    stream = made(open_stream(ada, above_threshold("people", 1, crossings=3)))["id"]
    for _ in range(2):
        made(ask_stream(ada, stream))
    counting = made(open_stream(ada, running_count("people", 1)))["id"]
    made(ada.post(f"/v1/streams/{counting}/ask", json={}))
    made(ask(ada, count("people", 0.3, fresh=True), new_key()))
    made(ask(ada, count("people", 0.4, fresh=True), new_key()))
    other = world.open_dataset(world.people["ada"])
    made(ask(ada, count(other, 0.1), new_key()))
    key = made(world.admin.post("/v1/analysts/vera/keys"))
    world.admin.delete(f"/v1/keys/{key['id']}")
    world.must_be_sound()
    world.ledger.stop()
    yield world
    world.ledger.stop()


def report_after(ledger: Ledger, statements: list[str]) -> tuple[Report, int]:
    """Verification report of a changed ledger, and the number of changed rows.

    The ledger is restored afterwards.
    """
    if ledger.database is None:
        return _on_sqlite(ledger, statements)
    return _on_postgres(ledger, statements)


def _on_sqlite(ledger: Ledger, statements: list[str]) -> tuple[Report, int]:
    path = ledger.sqlite_path
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")  # everything in one file
    sound = path.read_bytes()
    try:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
            for (name,) in names.fetchall():
                connection.execute(f"DROP TRIGGER {name}")
            for statement in PREPARED:
                connection.execute(statement)
            changed = sum(connection.execute(statement).rowcount for statement in statements)
            connection.commit()
        return _verified(f"sqlite:///{path}"), changed
    finally:
        for log in path.parent.glob("ledger.db-*"):
            log.unlink()
        path.write_bytes(sound)


def _on_postgres(ledger: Ledger, statements: list[str]) -> tuple[Report, int]:
    assert ledger.database is not None
    url = make_url(ledger.database)
    name = f"{url.database}_tampered"
    server = url.set(drivername="postgresql", database="postgres")
    copy = url.set(database=name)
    _execute(server, f'CREATE DATABASE "{name}" TEMPLATE "{url.database}"')
    plain = copy.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain) as connection:
        connection.execute(b"DROP TRIGGER entries_append_only ON entries")
        changed = 0
        for statement in PREPARED:
            connection.execute(statement.encode())
        for statement in statements:
            changed += connection.execute(statement.encode()).rowcount
    try:
        return _verified(copy.render_as_string(hide_password=False)), changed
    finally:
        _execute(server, f'DROP DATABASE "{name}" WITH (FORCE)')


def _execute(server: URL, statement: str) -> None:
    address = server.render_as_string(hide_password=False)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(statement.encode())


def _verified(url: str) -> Report:
    database = Database(url)
    try:
        return verify(SqlHistory(database).snapshot(None, stored=True))
    finally:
        database.engine.dispose()


def test_an_untouched_ledger_is_sound_and_covered(story: World) -> None:
    report, _ = report_after(story.ledger, [])
    assert report.sound, report.findings
    assert report.not_covered == {}
    assert report.charges >= 9


@pytest.mark.parametrize("what", TAMPERINGS)
def test_verification_finds_the_tampering(story: World, what: str) -> None:
    statements, word = TAMPERINGS[what]
    report, changed = report_after(story.ledger, statements)
    assert changed > 0, "the statements changed no row"
    assert any(word in finding.problem for finding in report.findings), report.findings


def test_the_running_server_and_the_command_find_the_tampering_too(
    peopled: Template, store_kind: str, tmp_path: Path
) -> None:
    world = peopled(store_kind, tmp_path / "ledger")
    try:
        made(ask(world.client("ada"), count("people", 0.1, fresh=True), new_key()))
        answer = made(ask(world.client("ada"), count("people", 0.1, fresh=True), new_key()))
        world.ledger.change(
            "UPDATE charges SET answer = replace(answer, '\"value\":', '\"value\":9') "
            f"WHERE id = '{answer['id']}'"
        )
        report = made(world.admin.get("/v1/ledger/verify"))
        (finding,) = report["findings"]
        assert finding["charge"] == answer["id"]
        ran = world.ledger.bursard("verify", check=False)
        assert ran.returncode == 1
        assert answer["id"] in ran.stdout
    finally:
        world.ledger.stop()
