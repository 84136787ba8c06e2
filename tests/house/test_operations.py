"""The commands of docs/operations.md run unchanged against a ledger in use."""

import os
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from sqlalchemy import make_url

from tests.bursard import CHECKOUT
from tests.conftest import Template
from tests.postgres import PostgresServer, find_binaries
from tests.server import World, ask, count, made, new_key

PAGE = CHECKOUT / "docs" / "operations.md"


def command(beginning: str) -> str:
    """The one command of the page with this beginning."""
    commands = re.findall(r"^\$ (.*?)(?=^\$ |^```$)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (found,) = [each for each in commands if each.startswith(beginning)]
    return str(found)


def shell(line: str, folder: Path, programs: Path, **variables: str) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{programs}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=folder,
        env={**os.environ, "PATH": path, **variables},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_sqlite_ledger_is_backed_up_while_it_serves_and_restored(
    peopled: Template, tmp_path: Path
) -> None:
    world = peopled("sqlite", tmp_path / "ledger")
    try:
        entries = charged(world)
        home = str(world.ledger.home)
        shell(command("bursard backup"), tmp_path, tmp_path, BURSAR_HOME=home)
        (check,) = re.findall(r"`(bursard verify --backup [^`]*)`", PAGE.read_text())
        output = shell(check, tmp_path, tmp_path, BURSAR_HOME=str(tmp_path / "other"))
        assert output.startswith(f"{entries} entries, ")
        assert output.endswith("sound\n")
        world.ledger.stop()
        (restore,) = re.findall(r"`(bursard restore b[^`]*)`", PAGE.read_text())
        shell(f"{restore} --yes", tmp_path, tmp_path, BURSAR_HOME=home)
        must_serve(World(world.ledger, world.people), entries)
    finally:
        world.ledger.stop()


def test_a_postgresql_ledger_is_backed_up_while_it_serves_and_restored(
    peopled: Template, postgres: PostgresServer, tmp_path: Path
) -> None:
    programs = find_binaries()
    if not (programs / "pg_dump").exists():
        pytest.skip("this PostgreSQL has no pg_dump")
    world = peopled("postgresql", tmp_path / "ledger")
    try:
        entries = charged(world)
        assert world.ledger.database is not None
        shell(command("pg_dump"), tmp_path, programs, LEDGER_URL=plain(world.ledger.database))
        world.ledger.stop()
        postgres.create_database("restored_ledger")
        world.ledger.database = postgres.url("restored_ledger")
        (restore,) = re.findall(r"`(pg_restore [^`]*)`", PAGE.read_text())
        shell(restore, tmp_path, programs, LEDGER_URL=plain(world.ledger.database))
        must_serve(World(world.ledger, world.people), entries)
    finally:
        world.ledger.stop()


def plain(url: str) -> str:
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def charged(world: World) -> int:
    made(ask(world.client("ada"), count("people", 0.25), new_key()))
    return int(world.must_be_sound()["entries"])


def must_serve(world: World, entries: int) -> None:
    assert world.must_be_sound()["entries"] == entries
    assert world.spent("people", "ada") == Decimal("0.25")


def test_the_page_is_linked() -> None:
    assert "docs/operations.md" in (CHECKOUT / "README.md").read_text()


@pytest.mark.parametrize("page", [PAGE, *PAGE.with_suffix("").glob("*.md")], ids=lambda p: p.stem)
def test_every_setting_that_a_page_names_exists(page: Path) -> None:
    known = set(re.findall(r"`(BURSAR_[A-Z_]+)`", (CHECKOUT / "docs/settings.md").read_text()))
    assert set(re.findall(r"`(BURSAR_[A-Z_]+)`", page.read_text())) <= known
