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
from tests.conftest import STORES, Template
from tests.server import (
    Ledger,
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

CHARGES = "reused_from IS NULL AND state = 'answered' AND id NOT IN (SELECT charge_id FROM streams)"
FIRST = f"(SELECT min(id) FROM charges WHERE {CHARGES})"
LAST = f"(SELECT max(id) FROM charges WHERE {CHARGES})"
REUSED = "(SELECT min(id) FROM charges WHERE reused_from IS NOT NULL)"
ASK = "(SELECT min(id) FROM asks WHERE state = 'answered')"
OTHER_BOOK = "(SELECT max(id) FROM books WHERE id <> 'system')"
ONE_BOOK = "(SELECT min(id) FROM books WHERE id <> 'system')"

# Statements that tamper, and a phrase of the finding.
TAMPERINGS: dict[str, tuple[list[str], str]] = {
    "a charge row's amount edited": (
        [f"UPDATE charges SET epsilon = 1 WHERE id = {FIRST}"],
        "differs from its entry",
    ),
    "a charge row's question edited": (
        [f"UPDATE charges SET question = '{{}}' WHERE id = {FIRST}"],
        "differs from its entry",
    ),
    "a charge row's request key edited": (
        [f"UPDATE charges SET request = request || 'x' WHERE id = {FIRST}"],
        "differs from its entry",
    ),
    "a charge row's reported price edited": (
        [f"UPDATE charges SET charged = replace(charged, '0.1', '0.01') WHERE id = {FIRST}"],
        "differs from its entry",
    ),
    "a charge row removed": ([f"DELETE FROM charges WHERE id = {FIRST}"], "charge is not there"),
    "the last charge row removed": (
        [f"DELETE FROM charges WHERE id = {LAST}"],
        "charge is not there",
    ),
    "a charge row added": (
        [
            "INSERT INTO charges (id, analyst_id, request, body_hash, reuse_key, dataset_id, "
            "version_id, state, attempt, lease_until, epsilon, delta, question, charged, "
            "created_at) SELECT 'q_ffff', analyst_id, 'another', body_hash, reuse_key, dataset_id, "
            f"version_id, 'charged', 1, 0, epsilon, delta, question, charged, created_at "
            f"FROM charges WHERE id = {FIRST}"
        ],
        "has no entry",
    ),
    "an entry removed": (
        [
            "DELETE FROM entries WHERE kind = 'charge' AND seq = "
            "(SELECT min(seq) FROM entries WHERE kind = 'charge')"
        ],
        "has no entry",
    ),
    "a stored answer edited": (
        [
            f"UPDATE charges SET answer = replace(answer, '\"value\":', '\"value\":1') "
            f"WHERE id = {FIRST}"
        ],
        "differs from its stamp",
    ),
    "the last stored answer edited": (
        [
            f"UPDATE charges SET answer = replace(answer, '\"value\":', '\"value\":1') "
            f"WHERE id = {LAST}"
        ],
        "differs from its stamp",
    ),
    "two stored answers exchanged": (
        [
            "UPDATE charges SET answer = CASE WHEN id = (SELECT a FROM two) "
            "THEN (SELECT b_answer FROM two) ELSE (SELECT a_answer FROM two) END "
            "WHERE id IN (SELECT a FROM two UNION SELECT b FROM two)"
        ],
        "differs from its stamp",
    ),
    "two stored answers exchanged with their stamps": (
        [
            "UPDATE charges SET answer = CASE WHEN id = (SELECT a FROM two) "
            "THEN (SELECT b_answer FROM two) ELSE (SELECT a_answer FROM two) END, "
            "stamp = CASE WHEN id = (SELECT a FROM two) "
            "THEN (SELECT b_stamp FROM two) ELSE (SELECT a_stamp FROM two) END "
            "WHERE id IN (SELECT a FROM two UNION SELECT b FROM two)"
        ],
        "differs from its stamp",
    ),
    "an answer made open again": (
        [
            "UPDATE charges SET state = 'charged', answer = NULL, settled_at = NULL "
            f"WHERE id = {FIRST}"
        ],
        "shown as open",
    ),
    "an answer made open again without its stamp": (
        [
            "UPDATE charges SET state = 'charged', answer = NULL, settled_at = NULL, stamp = NULL "
            f"WHERE id = {FIRST}"
        ],
        "are missing or unsettled",
    ),
    "an answer forfeited": (
        [f"UPDATE charges SET state = 'forfeited', answer = NULL WHERE id = {FIRST}"],
        "differs from its stamp",
    ),
    "an answer forfeited without its stamp": (
        [f"UPDATE charges SET state = 'forfeited', answer = NULL, stamp = NULL WHERE id = {FIRST}"],
        "without a stamp",
    ),
    "an answer voided": (
        [f"UPDATE charges SET state = 'voided', answer = NULL WHERE id = {FIRST}"],
        "refund entry disagree",
    ),
    "a time of settling edited": (
        [f"UPDATE charges SET settled_at = settled_at + 1 WHERE id = {FIRST}"],
        "differs from its stamp",
    ),
    "a reuse led to another answer": (
        [
            f"UPDATE charges SET reused_from = {LAST}, "
            f"reuse_key = (SELECT reuse_key FROM charges WHERE id = {LAST}) WHERE id = {REUSED}"
        ],
        "differs from its stamp",
    ),
    "a reuse led nowhere": (
        [f"UPDATE charges SET reused_from = 'q_nowhere' WHERE id = {REUSED}"],
        "repeats is not there",
    ),
    "a reuse removed": ([f"DELETE FROM charges WHERE id = {REUSED}"], "missing"),
    "a paid charge shown as a reuse": (
        [f"UPDATE charges SET answer = NULL, reused_from = {LAST} WHERE id = {FIRST}"],
        "repeats another's answer",
    ),
    "a fingerprint edited": (
        [
            f"UPDATE fingerprints SET fingerprint = 'x' || fingerprint WHERE book_id = {ONE_BOOK}",
        ],
        "fingerprints is not there",
    ),
    "a fingerprint removed": (
        [f"DELETE FROM fingerprints WHERE book_id = {ONE_BOOK}"],
        "fingerprints is not there",
    ),
    "a fingerprint led to another book": (
        [f"UPDATE fingerprints SET book_id = {OTHER_BOOK} WHERE book_id = {ONE_BOOK}"],
        "leads to another book",
    ),
    "a fingerprint added": (
        [f"INSERT INTO fingerprints (fingerprint, book_id) VALUES ('f', {ONE_BOOK})"],
        "no entry names",
    ),
    "a stream given more asks": (
        ["UPDATE streams SET asks_left = asks_left + 1 WHERE asks_left IS NOT NULL"],
        "do not match its asks",
    ),
    "a stream given more crossings": (
        ["UPDATE streams SET crossings_left = crossings_left + 1 WHERE crossings_left IS NOT NULL"],
        "do not match its asks",
    ),
    "a stream's secret exchanged": (
        ["UPDATE streams SET secret = 'another' WHERE secret IS NOT NULL"],
        "differs from its stamp",
    ),
    "a stream removed": (
        ["DELETE FROM streams WHERE secret IS NOT NULL"],
        "differs from its stamp",
    ),
    "an ask's answer edited": (
        [f"UPDATE asks SET answer = replace(answer, 'false', 'true') || ' ' WHERE id = {ASK}"],
        "differs from its stamp",
    ),
    "an ask removed": ([f"DELETE FROM asks WHERE id = {ASK}"], "do not match its asks"),
    "a node edited": (["UPDATE nodes SET noisy_count = noisy_count + 1"], "differs from its stamp"),
    "a node removed": (["DELETE FROM nodes"], "differs from its stamp"),
    "a card edited": (
        ["UPDATE datasets SET card = replace(card, 'add_remove', 'replace_one')"],
        "card differs from",
    ),
    "a dataset opened again": (["UPDATE datasets SET closed = 1 - closed"], "closed differs from"),
    "a dataset led to another book": (
        [f"UPDATE datasets SET book_id = {OTHER_BOOK} WHERE book_id = {ONE_BOOK}"],
        "no entry created it",
    ),
    "an analyst made an administrator": (
        ["UPDATE analysts SET role = 'admin' WHERE folded = 'bob'"],
        "role differs from",
    ),
    "a key that does not end": (
        ["UPDATE keys SET revoked_at = NULL WHERE revoked_at IS NOT NULL"],
        "revoked differs from",
    ),
    "a key led to another analyst": (
        [
            "UPDATE keys SET analyst_id = (SELECT id FROM analysts WHERE folded = 'bob') "
            "WHERE analyst_id = (SELECT id FROM analysts WHERE folded = 'admin')"
        ],
        "analyst differs from",
    ),
}
PREPARED = [
    "CREATE TABLE two AS SELECT x.id AS a, y.id AS b, x.answer AS a_answer, y.answer AS b_answer, "
    f"x.stamp AS a_stamp, y.stamp AS b_stamp FROM charges x, charges y "
    f"WHERE x.id = {FIRST} AND y.id = {LAST}",
]


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
