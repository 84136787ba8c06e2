"""An upgrade by the commands of the guide, with a next version that has one more migration.

The next version is a copy of this one with a real second revision. It runs as its own program, from
its own folder.
"""

import secrets
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bursard import (
    BURSARD,
    CHECKOUT,
    START_SECONDS,
    Ledger,
    Server,
    environment_with,
    wait_until,
)
from tests.conftest import Template
from tests.operations.guide import command, shell
from tests.postgres import PostgresServer, find_binaries
from tests.server import World, ask, count, made, new_key

REVISION = '''"""A later revision, which only the next version has."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table("later", sa.Column("id", sa.Integer(), primary_key=True))
    op.execute("INSERT INTO later VALUES (1)")
    {last}
'''
READY = "schema is 0001, this program needs 0002: run `bursard migrate`."


class NextVersion:
    """The program `bursard` of the next version."""

    def __init__(self, folder: Path, last: str = "") -> None:
        self.folder = folder
        for name in ("app", "migrations"):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(CHECKOUT / name, folder / name, ignore=ignored)
        revision = folder / "migrations" / "versions" / "0002_later.py"
        revision.write_text(REVISION.format(last=last))

    def environment(self, ledger: Ledger) -> dict[str, str]:
        return {**environment_with(ledger.environment()), "PYTHONPATH": str(self.folder)}

    def run(self, line: str, ledger: Ledger) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*BURSARD, *line.split()[1:]],
            cwd=self.folder,
            env=self.environment(ledger),
            capture_output=True,
            text=True,
        )

    def serve(self, ledger: Ledger) -> Server:
        log = self.folder / "server.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*BURSARD, "serve"],
                cwd=self.folder,
                env=self.environment(ledger),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        server = Server(process, log)
        ledger.servers.append(server)
        wait_until(server._is_ready, START_SECONDS, "the next version is not ready")
        return server


@pytest.fixture
def world(peopled: Template, tmp_path: Path) -> Iterator[World]:
    made = peopled("postgresql", tmp_path / "ledger")
    yield made
    made.ledger.stop()


def revision_of(ledger: Ledger) -> str:
    ((revision,),) = ledger.rows("SELECT version_num FROM alembic_version")
    return str(revision)


MIGRATE = command("Upgrade", "bursard migrate")


def test_an_upgrade_by_the_guide_keeps_every_charge_and_answer(
    world: World, tmp_path: Path, postgres: PostgresServer
) -> None:
    if not (find_binaries() / "pg_dump").exists():
        pytest.skip("this PostgreSQL has no pg_dump")
    ledger, key = world.ledger, new_key()
    first = ask(world.client("ada"), count("people", 0.25), key)
    world.server.stop()
    shell(command("A ledger in PostgreSQL", "pg_dump"), ledger, tmp_path)

    later = NextVersion(tmp_path / "later")
    refused = later.run("bursard serve", ledger)
    assert (refused.returncode, READY in refused.stderr) == (1, True), refused.stderr
    assert "Traceback" not in refused.stderr
    for _ in range(2):  # the second one has nothing to do
        migrated = later.run(MIGRATE, ledger)
        assert migrated.returncode == 0, migrated.stderr
    assert revision_of(ledger) == "0002"
    world.use(later.serve(ledger))
    assert ask(world.client("ada"), count("people", 0.25), key).content == first.content
    made(ask(world.client("ada"), count("people", 0.125), new_key()))
    world.must_be_sound()
    ledger.stop()

    old = ledger.bursard("serve", check=False)
    assert (old.returncode, "schema is 0002, this program needs 0001" in old.stderr) == (1, True)
    # Back to the old version by its backup, which lacks the last charge.
    name = f"before_{secrets.token_hex(8)}"
    postgres.create_database(name)
    ledger.database = postgres.url(name)
    shell(command("Restore", "pg_restore"), ledger, tmp_path)
    world = World(ledger, world.people)
    refused_charge = ask(world.client("ada"), count("people", 0.01), new_key())
    assert refused_charge.json()["type"] == "/problems/ledger-behind"


def test_a_forgotten_server_of_the_old_version_is_not_ready(world: World, tmp_path: Path) -> None:
    server = world.server
    assert server.client().get("/readyz").status_code == 200
    assert NextVersion(tmp_path / "later").run(MIGRATE, world.ledger).returncode == 0
    assert server.client().get("/readyz").status_code == 503


def test_a_failed_migration_changes_nothing(world: World, tmp_path: Path) -> None:
    later = NextVersion(tmp_path / "later", last='raise RuntimeError("the disk is full")')
    failed = later.run(MIGRATE, world.ledger)
    assert failed.returncode != 0
    assert revision_of(world.ledger) == "0001"
    exists = "SELECT count(*) FROM information_schema.tables WHERE table_name = 'later'"
    assert world.ledger.rows(exists) == [(0,)]
    made(ask(world.client("ada"), count("people", 0.25), new_key()))
