"""A server on an older copy of its ledger is refused before anything is charged.

The copy is put back into a home without anchors, so the server itself does not notice.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import bursar
from bursar import Client, col
from tests.server import World

PROGRAM = [sys.executable, "-c", "from bursar.command import main; main()"]


def put_back(world: World, folder: Path) -> None:
    """Replace the ledger by the copy in a folder. The key that seals streams stays."""
    world.ledger.stop()
    for path in [*world.ledger.home.glob("ledger.db*"), *world.ledger.home.glob("*anchor*")]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in folder.iterdir():
        shutil.copy(path, world.ledger.home)


@pytest.fixture
def rolled_back(live: World, tmp_path: Path) -> Client:
    """A client that has seen a charge which its server has lost since."""
    port = live.server.url.rpartition(":")[2]
    key = live.people["ada"].key
    client = bursar.connect(live.server.url, key, state=tmp_path / "state" / "bursar")
    client["people"].where(col.age > 3).count().ask(epsilon="0.01")
    live.ledger.stop()
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in live.ledger.home.glob("ledger.db*"):
        shutil.copy(path, copy)
    live.serve(BURSAR_PORT=port)
    client["people"].where(col.age > 4).count().ask(epsilon="0.01")
    put_back(live, copy)
    live.serve(BURSAR_PORT=port)
    assert "behind its anchors" not in live.server.output()
    return client


def ask_sql(client: Client) -> object:
    return client.sql("SELECT COUNT(*) FROM people WHERE age > 5").ask(epsilon="0.01")


def ask_sql_of_a_dataset(client: Client) -> object:
    return client["people"].sql("SELECT COUNT(*) FROM people WHERE age > 5").ask(epsilon="0.01")


def ask_count(client: Client) -> object:
    return client["people"].where(col.age > 6).count().ask(epsilon="0.01")


def open_stream(client: Client) -> object:
    opener = client["people"].above_threshold(5, crossings=1, asks_max=5)
    return opener.open(epsilon="0.01")


ASKS = [ask_sql, ask_sql_of_a_dataset, ask_count, open_stream]


def spent(world: World) -> float:
    return float(world.budget("people", "ada")["spent"]["epsilon"])


def test_nothing_is_charged_on_a_rolled_back_server(
    rolled_back: Client, live: World, tmp_path: Path
) -> None:
    before = spent(live)
    again = bursar.connect(
        rolled_back.url, live.people["ada"].key, state=tmp_path / "state" / "bursar"
    )
    for client in (rolled_back, again):
        for ask in ASKS:
            refused(ask, client)
    assert spent(live) == before
    for words in (
        ["ask", "people", "count", "-w", "age>6", "-e", "0.01"],
        ["sql", "SELECT COUNT(*) FROM people WHERE age > 5", "-e", "0.01"],
    ):
        done = subprocess.run(
            [*PROGRAM, *words],
            env={
                **os.environ,
                "BURSAR_URL": live.server.url,
                "BURSAR_KEY": live.people["ada"].key,
                "XDG_STATE_HOME": str(tmp_path / "state"),
            },
            capture_output=True,
            text=True,
        )
        assert done.returncode == 2, done.stderr
        assert "older copy" in done.stderr
    assert spent(live) == before
    rolled_back.close()
    again.close()


def refused(ask: Callable[[Client], object], client: Client) -> None:
    with pytest.raises(bursar.RolledBack, match="older copy"):
        ask(client)


def test_a_stream_of_a_rolled_back_server_answers_nothing(live: World, tmp_path: Path) -> None:
    port = live.server.url.rpartition(":")[2]
    with bursar.connect(live.server.url, live.people["bob"].key, state=None) as client:
        stream = client["people"].above_threshold(5, crossings=1, asks_max=9).open(epsilon="0.01")
        assert stream.ask(col.age > 119).asks_left == 8
        live.ledger.stop()
        copy = tmp_path / "copy"
        copy.mkdir()
        for path in live.ledger.home.glob("ledger.db*"):
            shutil.copy(path, copy)
        live.serve(BURSAR_PORT=port)
        open_stream(client)
        put_back(live, copy)
        live.serve(BURSAR_PORT=port)
        with pytest.raises(bursar.RolledBack, match="older copy"):
            stream.ask(col.age > 118)
        assert stream.refresh().state.asks_left == 8
