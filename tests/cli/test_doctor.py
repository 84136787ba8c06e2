"""`bursard doctor`: names what is wrong, changes nothing, and shows no secret."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import make_url

from tests.bursard import BURSARD, CHECKOUT, Ledger, environment_with
from tests.cli.running import run_here
from tests.conftest import Template
from tests.end_to_end.crashes.rollback.copies import Copies, spend
from tests.postgres import PostgresServer
from tests.server import World, above_threshold, made, open_stream


class Examination(NamedTuple):
    code: int
    results: list[dict[str, Any]]
    text: str

    def of(self, check: str) -> list[str]:
        return [result["state"] for result in self.results if result["check"] == check]

    def failures(self) -> list[str]:
        return [result["check"] for result in self.results if result["state"] == "failed"]


def examined(ledger: Ledger, **changes: str) -> Examination:
    done = subprocess.run(
        [*BURSARD, "doctor", "--json"],
        cwd=CHECKOUT,
        env=environment_with({**ledger.environment(), **changes}),
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    return Examination(done.returncode, json.loads(done.stdout), done.stdout)


def content(folder: Path) -> dict[str, Any]:
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else None)
        for path in [folder, *folder.rglob("*")]
    }


def rows(ledger: Ledger) -> list[Any]:
    tables = ["installation", "books", "entries", "analysts", "keys"]
    return [ledger.rows(f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables]


@pytest.fixture
def in_order(peopled: Template, tmp_path: Path) -> Iterator[World]:
    """A SQLite ledger that was used, and whose server is stopped."""
    world = peopled("sqlite", tmp_path / "ledger")
    world.ledger.home.chmod(0o700)
    yield world
    world.ledger.stop()


def test_a_ledger_in_use_is_in_order_and_stays_unchanged(world: World) -> None:
    spend(world.client("ada"), "0.1")
    world.ledger.home.chmod(0o700)
    before = rows(world.ledger)
    seen = examined(world.ledger)
    assert (seen.code, seen.failures()) == (0, []), seen.text
    for check in ("ledger", "durability", "rollback", "clock", "secret key", "DuckDB"):
        assert seen.of(check) == ["ok"], check
    assert rows(world.ledger) == before
    made(world.admin.get("/v1/datasets"))
    for secret in (world.ledger.admin_key, world.people["ada"].key, "Bearer"):
        assert secret not in seen.text
    world.must_be_sound()


def test_nothing_beside_a_stopped_ledger_is_made_or_changed(in_order: World) -> None:
    home = in_order.ledger.home
    shared = str(home / "ledger.db-shm")  # the index of the log, in memory that readers share
    before = content(home)
    assert examined(in_order.ledger).code == 0
    after = content(home)
    assert before.keys() == after.keys()
    assert before | {shared: None} == after | {shared: None}

    in_order.ledger.change(
        "SELECT count(*) FROM books"
    )  # the last connection that closes removes the log
    assert not (home / "ledger.db-wal").exists()
    before = content(home)
    assert examined(in_order.ledger).code == 0
    assert content(home) == before


def test_a_home_that_does_not_exist_is_not_made(ledger: Ledger) -> None:
    seen = examined(ledger)
    assert (seen.code, seen.of("ledger"), seen.of("disk of home")) == (0, ["warning"], ["warning"])
    assert not ledger.home.exists()


def test_each_check_is_one_line(in_order: World) -> None:
    done = in_order.ledger.bursard("doctor")
    for line in done.stdout.splitlines():
        assert line.split()[0] in ("ok", "warning", "failed"), line
        assert ": " in line


def test_every_wrong_setting_is_named(ledger: Ledger) -> None:
    changes = {"BURSAR_PORT": "many", "BURSAR_WRKERS": "2", "BURSAR_ADMIN_KEY": "SECRET KEY"}
    seen = examined(ledger, **changes)
    assert (seen.code, seen.failures()) == (1, ["settings"] * 3)
    for name in changes:
        assert name in seen.text
    assert "SECRET" not in seen.text
    weak = examined(ledger, BURSAR_ADMIN_KEY="SECRET", BURSAR_LEASE_SECONDS="1")
    assert weak.of("settings") == ["warning"] * 3, "key, lease, and the grid of the tests"
    assert "SECRET" not in weak.text


def test_a_ledger_behind_its_anchors_fails_and_is_not_stopped_by_the_look(
    world: World, store_kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    postgres = request.getfixturevalue("postgres") if store_kind == "postgresql" else None
    copies = Copies(world.ledger, postgres, tmp_path / "copies")
    world.ledger.stop()
    backup = copies.take()
    world.serve()
    spend(world.client("ada"), "0.1")
    world.ledger.stop()
    copies.restore(backup)
    before = rows(world.ledger)
    seen = examined(world.ledger)
    assert (seen.code, seen.failures()) == (1, ["rollback"]), seen.text
    assert "bursard reconcile" in seen.text
    assert rows(world.ledger) == before


def test_a_clock_before_the_newest_entry_fails(world: World) -> None:
    world.ledger.change("UPDATE books SET last_at = 4000000000000000 WHERE id = 'system'")
    seen = examined(world.ledger)
    assert (seen.code, seen.failures()) == (1, ["clock"])


def test_open_streams_need_their_key(in_order: World) -> None:
    made(open_stream(in_order.client("ada"), above_threshold("people", "0.1")))
    in_order.ledger.stop()
    assert examined(in_order.ledger).of("secret key") == ["ok"]
    (in_order.ledger.home / "secret.key").unlink()
    assert examined(in_order.ledger).failures() == ["secret key"]
    assert examined(in_order.ledger, BURSAR_SECRET_KEY="s" * 40).failures() == []


def test_what_others_may_read_is_named(in_order: World, tmp_path: Path) -> None:
    ledger = in_order.ledger
    ledger.home.chmod(0o755)
    seen = examined(ledger)
    assert (seen.code, seen.failures()) == (1, ["readers"])
    assert f"chmod 700 {ledger.home}" in seen.text
    ledger.home.chmod(0o750)
    assert examined(ledger).code == 0
    ledger.home.chmod(0o700)
    connections = tmp_path / "connections.json"
    connections.write_text("{}")
    connections.chmod(0o644)
    assert examined(ledger, BURSAR_CONNECTIONS=str(connections)).failures() == ["readers"]
    connections.chmod(0o600)
    assert examined(ledger, BURSAR_CONNECTIONS=str(connections)).code == 0


def test_anchors_belong_outside_the_home(in_order: World, tmp_path: Path) -> None:
    inside = str(in_order.ledger.home / "anchors")
    assert examined(in_order.ledger, BURSAR_ANCHOR=inside).failures() == ["anchors"]
    outside = tmp_path / "elsewhere"
    outside.mkdir(mode=0o700)
    assert examined(in_order.ledger, BURSAR_ANCHOR=str(outside)).failures() == []
    shutil.rmtree(inside)
    assert examined(in_order.ledger).of("anchors") == ["warning", "warning"]


def test_connections_answer_or_are_named_without_their_address(
    in_order: World, postgres: PostgresServer, tmp_path: Path
) -> None:
    there = make_url(postgres.url("postgres")).set(drivername="postgresql")
    named = {
        "warehouse": {"engine": "postgresql", "url": there.render_as_string(hide_password=False)},
        "away": {"engine": "postgresql", "url": "postgresql://u:SECRET@127.0.0.1:1/x"},
        "cluster": {"engine": "spark", "url": "sc://127.0.0.1:1/;token=SECRET"},
    }
    path = tmp_path / "connections.json"
    path.write_text(json.dumps(named))
    path.chmod(0o600)
    seen = examined(in_order.ledger, BURSAR_CONNECTIONS=str(path))
    assert seen.of("connection warehouse") == ["ok"]
    assert seen.failures() == ["connection away", "connection cluster"]
    assert "SECRET" not in seen.text
    assert "127.0.0.1" not in seen.text


@pytest.mark.parametrize(
    ("free", "state"), [(3_000_000_000, "ok"), (1_000_000_000, "warning"), (50_000_000, "failed")]
)
def test_a_full_disk_is_noticed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, free: int, state: str
) -> None:
    usage = shutil.disk_usage(ledger.data)._replace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    results = json.loads(run_here("doctor", "--json").stdout)
    assert [each["state"] for each in results if each["check"] == "disk of data"] == [state]


@pytest.mark.parametrize(("kind", "states"), [("nfs4", ["failed"]), ("ext4", ["ok"])])
def test_a_ledger_on_a_network_file_system_fails(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, states: list[str]
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"disk / ext4 rw 0 0\nserver:/x {ledger.folder.resolve()} {kind} rw 0 0\n")
    monkeypatch.setattr("app.cli.doctor.places.MOUNTS", mounts)
    ledger.home.mkdir(parents=True, mode=0o700)
    results = json.loads(run_here("doctor", "--json").stdout)
    assert [each["state"] for each in results if each["check"] == "file system"] == states


def test_a_damaged_old_or_missing_ledger_fails(in_order: World) -> None:
    ledger = in_order.ledger
    ledger.change("UPDATE alembic_version SET version_num = '0000'")
    seen = examined(ledger)
    assert (seen.code, seen.failures()) == (1, ["ledger"])
    assert "bursard migrate" in seen.text
    ledger.sqlite_path.write_bytes(b"no ledger at all" * 400)
    assert examined(ledger).failures() == ["ledger"]
    elsewhere = f"sqlite:///{ledger.folder / 'none.db'}"
    assert examined(ledger, BURSAR_DATABASE_URL=elsewhere).failures() == ["ledger"]
    away = "postgresql://u:SECRET@127.0.0.1:1/x"
    seen = examined(ledger, BURSAR_DATABASE_URL=away)
    assert seen.failures() == ["ledger"]
    assert "SECRET" not in seen.text


def test_a_postgresql_that_could_lose_a_commit_fails(peopled: Template, tmp_path: Path) -> None:
    world = peopled("postgresql", tmp_path / "ledger")
    world.ledger.home.chmod(0o700)
    assert world.ledger.database is not None
    name = make_url(world.ledger.database).database
    world.ledger.change(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    assert examined(world.ledger).failures() == ["durability"]
