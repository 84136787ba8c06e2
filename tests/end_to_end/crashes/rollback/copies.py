"""Copies of a ledger that are put back, and the replies of servers that notice it."""

import secrets
import shutil
from pathlib import Path

import httpx
import psycopg
from sqlalchemy import make_url

from tests.bursard import Ledger
from tests.conftest import Template
from tests.postgres import PostgresServer
from tests.server import World, ask, count, made, new_key


class Copies:
    """Copies of a ledger's database, taken and restored while no server runs."""

    def __init__(self, ledger: Ledger, postgres: PostgresServer | None, folder: Path) -> None:
        self._ledger = ledger
        self._postgres = postgres
        self._folder = folder

    def take(self) -> str:
        name = f"backup_{secrets.token_hex(6)}"
        if self._ledger.database is None:
            target = self._folder / name
            target.mkdir(parents=True)
            for path in self._ledger.home.glob("ledger.db*"):
                if path.suffix != ".lock":
                    shutil.copy(path, target)
            return name
        assert self._postgres is not None
        self._postgres.create_database(name, template=make_url(self._ledger.database).database)
        return name

    def restore(self, name: str) -> None:
        if self._ledger.database is None:
            for path in self._ledger.home.glob("ledger.db*"):
                if path.suffix != ".lock":
                    path.unlink()
            for path in (self._folder / name).iterdir():
                shutil.copy(path, self._ledger.home)
            return
        assert self._postgres is not None
        url = make_url(self._ledger.database)
        admin = url.set(drivername="postgresql", database="postgres")
        with psycopg.connect(
            admin.render_as_string(hide_password=False), autocommit=True
        ) as connection:
            connection.execute(f'DROP DATABASE "{url.database}" WITH (FORCE)'.encode())
            connection.execute(f'CREATE DATABASE "{url.database}" TEMPLATE "{name}"'.encode())


def spend(client: httpx.Client, epsilon: str, times: int = 1, dataset: str = "people") -> None:
    for _ in range(times):
        made(ask(client, count(dataset, epsilon, fresh=True), new_key()))


def refused(reply: httpx.Response) -> None:
    assert reply.status_code == 503, reply.text
    assert reply.json()["type"] == "/problems/ledger-behind"
    assert "anchors" in reply.json()["detail"]


def restart(world: World) -> None:
    world.ledger.stop()
    world.serve()


def on_postgres(peopled: Template, postgres: PostgresServer, folder: Path) -> tuple[World, Copies]:
    world = peopled("postgresql", folder / "ledger")
    return world, Copies(world.ledger, postgres, folder / "copies")


def account_lines(world: World, dataset: str) -> list[str]:
    reply = world.admin.get("/v1/ledger/export", params={"dataset": dataset})
    return [line for line in reply.text.splitlines() if '"type":"account"' in line]
