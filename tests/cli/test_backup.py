"""`bursard backup` and `restore`: whole copies, and a restored ledger that knows what it lacks."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from threading import Event

import pytest
from sqlalchemy import make_url

from tests.bursard import CHECKOUT, MAIN, environment_with
from tests.cli.terminal import Terminal
from tests.conftest import Template
from tests.end_to_end.crashes.rollback.copies import refused, spend
from tests.server import (
    World,
    above_threshold,
    ask,
    ask_stream,
    count,
    made,
    new_key,
    open_stream,
)


@pytest.fixture
def used(peopled: Template, tmp_path: Path) -> Iterator[World]:
    """A ledger in SQLite on which ada has spent 0.1."""
    world = peopled("sqlite", tmp_path / "ledger")
    spend(world.client("ada"), "0.1")
    yield world
    world.ledger.stop()


def entries_of(folder: Path) -> int:
    return int(json.loads((folder / "manifest.json").read_text())["entries"])


def test_backups_under_load_are_whole_and_sound(used: World, tmp_path: Path) -> None:
    used.grant("people", "bob", 100)
    done = Event()

    def ask_on() -> int:
        client, asked = used.client("bob"), 0
        while not done.is_set():
            spend(client, "0.001")
            asked += 1
        return asked

    with ThreadPoolExecutor(3) as pool:
        asking = [pool.submit(ask_on) for _ in range(3)]
        try:
            for number in range(3):
                used.ledger.bursard("backup", str(tmp_path / f"b{number}"))
        finally:
            done.set()
        asked = sum(each.result() for each in asking)
    folders = [tmp_path / f"b{number}" for number in range(3)]
    counts = [entries_of(folder) for folder in folders]
    assert counts == sorted(set(counts)), "each copy is later than the one before"
    assert asked > 3
    for folder in folders:
        ran = used.ledger.bursard("verify", "--backup", str(folder))
        assert ran.stdout.startswith(f"{entries_of(folder)} entries, ")
        assert {path.name for path in folder.iterdir()} == {"ledger.db", "manifest.json"}
        assert folder.stat().st_mode & 0o077 == 0
        assert (folder / "ledger.db").stat().st_mode & 0o077 == 0
    used.must_be_sound()


@pytest.mark.crash
@pytest.mark.parametrize("function", ["_describe", "_write", "_flush"])
def test_a_killed_backup_leaves_nothing_of_its_name(
    used: World, tmp_path: Path, function: str
) -> None:
    plan = (
        "import os, signal; from app.store import backup\n"
        f"backup.{function} = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    target = tmp_path / "backup"
    killed = subprocess.run(
        [sys.executable, "-c", plan + MAIN, "backup", str(target)],
        cwd=CHECKOUT,
        env=environment_with(used.ledger.environment()),
    )
    assert killed.returncode == -9
    assert not target.exists()
    for left in tmp_path.glob(".backup.partial-*"):
        assert used.ledger.bursard("restore", str(left), "--yes", check=False).returncode == 2
    used.ledger.bursard("backup", str(target))
    assert used.ledger.bursard("verify", "--backup", str(target)).returncode == 0


@pytest.mark.invariant("I36")
def test_an_old_backup_stops_charging_until_the_lost_loss_is_booked(
    used: World, tmp_path: Path
) -> None:
    ledger, target = used.ledger, tmp_path / "backup"
    ledger.bursard("backup", str(target))
    spend(used.client("ada"), "0.2")
    spend(used.client("bob"), "0.05", 2)
    ledger.stop()
    done = ledger.bursard("restore", str(target), "--yes")
    assert "behind its anchors" in done.stdout
    server = used.serve()
    assert "behind its anchors" in server.output()
    refused(ask(used.client("ada"), count("people", "0.1", fresh=True), new_key()))
    assert used.spent("people", "ada") == Decimal("0.1")
    ledger.bursard("reconcile", "--reason", "the disk failed")
    spend(used.client("ada"), "0.01")
    assert used.spent("people", "ada") == Decimal("0.31"), "0.1, the lost 0.2, and 0.01"
    assert used.spent("people", "bob") == Decimal("0.1")
    used.must_be_sound()


def test_the_newest_backup_needs_no_reconciling(used: World, tmp_path: Path) -> None:
    ledger, target = used.ledger, tmp_path / "backup"
    ledger.stop()
    ledger.bursard("backup", str(target))
    anchors = {path.name: path.read_bytes() for path in ledger.home.glob("anchors/*/*")}
    done = ledger.bursard("restore", str(target), "--yes")
    assert "It has everything that its anchors have seen." in done.stdout
    assert {path.name: path.read_bytes() for path in ledger.home.glob("anchors/*/*")} == anchors
    server = used.serve()
    assert "behind" not in server.output()
    spend(used.client("ada"), "0.1")
    assert used.spent("people", "ada") == Decimal("0.2")
    used.must_be_sound()


def test_a_restore_is_refused_while_a_server_has_the_ledger(used: World, tmp_path: Path) -> None:
    ledger, target = used.ledger, tmp_path / "backup"
    ledger.bursard("backup", str(target))
    spend(used.client("ada"), "0.1")
    for anchored in (True, False):  # also if nobody can see that the server writes anchors
        if not anchored:
            (ledger.home / "anchors").rename(ledger.home / "aside")
        refusal = ledger.bursard("restore", str(target), "--yes", check=False)
        assert (refusal.returncode, "stop it first" in refusal.stderr) == (1, True)
    (ledger.home / "aside").rename(ledger.home / "anchors")
    assert not list(ledger.home.glob("ledger.db.*ing-*"))
    spend(used.client("ada"), "0.1")
    assert used.spent("people", "ada") == Decimal("0.3")
    used.must_be_sound()


def test_a_present_ledger_is_replaced_only_on_request_and_kept(used: World, tmp_path: Path) -> None:
    ledger, target = used.ledger, tmp_path / "backup"
    ledger.bursard("backup", str(target))
    spend(used.client("ada"), "0.1")
    ledger.stop()
    before = ledger.rows("SELECT count(*) FROM entries")
    silent = ledger.bursard("restore", str(target), check=False)
    assert (silent.returncode, "--yes" in silent.stderr) == (2, True)
    terminal = Terminal(ledger, "restore", str(target))
    terminal.wait_for("Replace it by the backup?")
    terminal.say("n")
    assert terminal.end() == 1
    assert ledger.rows("SELECT count(*) FROM entries") == before
    ledger.bursard("restore", str(target), "--yes")
    (kept,) = ledger.home.glob("ledger.db.replaced-*")
    assert not (ledger.home / "ledger.db-wal").exists()
    shutil.copy(kept, ledger.sqlite_path)
    assert ledger.rows("SELECT count(*) FROM entries") == before


def test_a_damaged_ledger_is_replaced(used: World, tmp_path: Path) -> None:
    ledger, target = used.ledger, tmp_path / "backup"
    ledger.bursard("backup", str(target))
    ledger.stop()
    ledger.sqlite_path.write_bytes(b"the disk has failed " * 1000)
    (ledger.home / "ledger.db-wal").write_bytes(b"and so has the log" * 100)
    done = ledger.bursard("restore", str(target), "--yes")
    assert "cannot be read" in done.stdout
    spend(World(ledger, used.people).client("ada"), "0.01")


@pytest.mark.saboteur
def test_a_changed_backup_is_refused(used: World, tmp_path: Path) -> None:
    ledger, target = used.ledger, tmp_path / "backup"
    ledger.bursard("backup", str(target))
    ledger.stop()
    whole = (target / "ledger.db").read_bytes()
    flipped = whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:]
    for damaged in (whole[:-4096], flipped, b""):
        (target / "ledger.db").write_bytes(damaged)
        for command in (("restore", str(target), "--yes"), ("verify", "--backup", str(target))):
            refusal = ledger.bursard(*command, check=False)
            assert refusal.returncode == 1, command
            assert "damaged" in refusal.stderr
    (target / "manifest.json").unlink()
    assert ledger.bursard("restore", str(target), "--yes", check=False).returncode == 2
    spend(World(ledger, used.people).client("ada"), "0.01")


def test_the_secret_of_streams_is_kept_apart_unless_asked_for(used: World, tmp_path: Path) -> None:
    ledger = used.ledger
    stream = made(open_stream(used.client("ada"), above_threshold("people", "0.1")))["id"]
    secret = ledger.home / "secret.key"
    text = secret.read_text()
    apart = ledger.bursard("backup", str(tmp_path / "apart"))
    assert "keep it apart" in apart.stdout
    assert not (tmp_path / "apart" / "secret.key").exists()
    ledger.bursard("backup", str(tmp_path / "both"), "--with-secret-key")
    ledger.stop()
    secret.unlink()
    done = ledger.bursard("restore", str(tmp_path / "apart"), "--yes")
    assert "put it back" in done.stdout
    assert not secret.exists()
    ledger.bursard("restore", str(tmp_path / "both"), "--yes")
    assert (secret.read_text(), secret.stat().st_mode & 0o777) == (text, 0o600)
    for shown in (apart.stdout, done.stdout, (tmp_path / "both" / "manifest.json").read_text()):
        assert text not in shown
    used.serve()
    made(ask_stream(used.client("ada"), stream))


def test_wrong_places_are_named(used: World, tmp_path: Path) -> None:
    ledger = used.ledger
    (tmp_path / "taken").mkdir()
    taken = ledger.bursard("backup", str(tmp_path / "taken"), check=False)
    assert (taken.returncode, "exists" in taken.stderr) == (2, True)
    nowhere = ledger.bursard("backup", str(tmp_path / "none" / "b"), check=False)
    assert (nowhere.returncode, "No such file" in nowhere.stderr) == (2, True)
    keyless = ledger.bursard("backup", str(tmp_path / "b"), "--with-secret-key", check=False)
    assert (keyless.returncode, "secret.key" in keyless.stderr) == (2, True)
    assert not list(tmp_path.glob("*b*/manifest.json"))


def test_for_postgresql_the_commands_are_printed_without_the_password(
    peopled: Template, tmp_path: Path
) -> None:
    world = peopled("postgresql", tmp_path / "ledger")
    assert world.ledger.database is not None
    secret = "a-password-to-hide"
    url = make_url(world.ledger.database).set(password=secret)
    world.ledger.database = url.render_as_string(hide_password=False)
    for command in ("backup", "restore"):
        done = world.ledger.bursard(command, str(tmp_path / "dump"), check=False)
        assert done.returncode == 2, "a script must not take this for a backup"
        assert "pg_dump --format=custom" in done.stdout
        assert "pg_restore --no-owner" in done.stdout
        assert str(world.ledger.home / "anchors") in done.stdout
        assert secret not in done.stdout + done.stderr
        assert "***" not in done.stdout
    assert not (tmp_path / "dump").exists()
