"""A ledger restored from an older copy is noticed.

It accepts charges again only after the lost spend is booked (I36, D4).
"""

import secrets
import shutil
from decimal import Decimal
from pathlib import Path

import httpx
import psycopg
import pytest
from sqlalchemy import make_url

from tests.conftest import Template
from tests.postgres import PostgresServer
from tests.server import (
    Ledger,
    World,
    above_threshold,
    ask,
    ask_stream,
    ask_until_settled,
    card,
    count,
    exact,
    made,
    new_key,
    new_ledger,
    open_stream,
)

pytestmark = pytest.mark.invariant("I36")


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


@pytest.fixture
def copies(world: World, store_kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Copies:
    postgres = request.getfixturevalue("postgres") if store_kind == "postgresql" else None
    return Copies(world.ledger, postgres, tmp_path / "copies")


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


def test_a_restored_ledger_is_noticed_and_charges_again_once_the_lost_spend_is_booked(
    world: World, copies: Copies
) -> None:
    spend(world.client("ada"), "0.1", 2)
    spend(world.client("bob"), "0.05")
    before_entries = len(world.entries("people"))
    world.ledger.stop()
    backup = copies.take()
    world.serve()
    key = new_key()
    lost = made(ask(world.client("ada"), count("people", "0.2", fresh=True), key))
    restart(world)  # the copy is older than the last start
    spend(world.client("bob"), "0.07", 3)
    world.ledger.stop()
    copies.restore(backup)
    server = world.serve()
    assert "behind its anchors" in server.output()

    refused(ask(world.client("ada"), count("people", "0.1", fresh=True), new_key()))
    refused(ask(world.client("ada"), count("people", "0.2", fresh=True), key))
    refused(open_stream(world.client("ada"), above_threshold("people", "0.1")))
    assert len(world.entries("people")) == before_entries, "reads work, and nothing was written"
    assert world.spent("people", "ada") == Decimal("0.2")
    report = made(world.admin.get("/v1/ledger/verify"))
    assert not report["sound"]
    assert report["anchors"]["stopped"]
    assert any("anchor has seen" in finding["problem"] for finding in report["findings"])
    ran = world.ledger.bursard("verify", check=False)
    assert ran.returncode == 1
    assert "behind its anchors" in ran.stdout

    assert world.client("ada").post("/v1/ledger/reconcile", json={"reason": "r"}).status_code == 403
    assert world.admin.post("/v1/ledger/reconcile", json={}).status_code == 422
    booked = made(world.admin.post("/v1/ledger/reconcile", json={"reason": "disk died"}))
    assert booked["accounts"] == 3
    assert world.spent("people", "ada") == Decimal("0.4")
    assert world.spent("people", "bob") == Decimal("0.26")
    assert world.spent("people", "*") == Decimal("0.66")
    (entry,) = world.entries("people", "reconciled")
    assert (entry["actor"], entry["body"]["reason"]) == ("admin", "disk died")
    for change in entry["body"]["accounts"]:
        assert change["before"]["spent"] < change["after"]["spent"]

    world.must_be_sound()
    again = made(ask(world.client("ada"), count("people", "0.2", fresh=True), key))
    assert again["id"] != lost["id"]
    assert world.spent("people", "ada") == Decimal("0.6"), (
        "the lost spend counts, and the new charge"
    )
    assert ask(world.client("ada"), count("people", "0.5"), new_key()).status_code == 402
    assert world.admin.post("/v1/ledger/reconcile", json={"reason": "r"}).status_code == 409
    for _ in range(3):  # anchors of the lost entries do not count as new ones
        restart(world)
        assert "behind" not in world.server.output()
        spend(world.client("ada"), "0.01")
        world.must_be_sound()


def test_verify_notices_a_restored_ledger_and_stops_a_running_server(
    world: World, copies: Copies
) -> None:
    """The running server was started on the restored copy, with a home without anchors."""
    spend(world.client("ada"), "0.1")
    world.ledger.stop()
    backup = copies.take()
    world.serve()
    spend(world.client("ada"), "0.1")
    world.ledger.stop()
    anchors = world.ledger.home / "anchors"
    anchors.rename(world.ledger.home / "aside")
    copies.restore(backup)
    server = world.serve()
    assert "behind" not in server.output()
    spend(world.client("ada"), "0.03")
    for path in (world.ledger.home / "aside").glob("*/*.anchor"):
        shutil.copy(path, anchors / path.parent.name)
    ran = world.ledger.bursard("verify", check=False)
    assert ran.returncode == 1
    assert "behind its anchors" in ran.stdout
    refused(ask(world.client("ada"), count("people", "0.1", fresh=True), new_key()))
    done = world.ledger.bursard("reconcile", "--reason", "found by the auditor")
    assert "Charging is resumed" in done.stdout
    spend(world.client("ada"), "0.01")
    assert world.spent("people", "ada") == Decimal("0.24"), "0.1, the lost 0.1, 0.03 and 0.01"
    world.must_be_sound()


def test_answers_lost_without_their_charges_are_never_drawn_again(
    world: World, copies: Copies
) -> None:
    """The copy dates from between charge and answer: the open charge is forfeited."""
    person = world.people["ada"]
    world.serve(fault="F4=kill", lease_seconds=1)
    key = new_key()
    with pytest.raises(httpx.TransportError):
        ask(world.client(person), count("people", "0.1"), key)
    world.server.wait_dead()
    backup = copies.take()
    world.serve(lease_seconds=1)
    first = made(ask_until_settled(world.client(person), count("people", "0.1"), key))
    restart(world)  # writes the anchors anew
    world.ledger.stop()
    copies.restore(backup)
    world.serve(lease_seconds=1)
    refused(ask(world.client(person), count("people", "0.1", fresh=True), new_key()))
    refused_again = ask(world.client(person), count("people", "0.1"), key)
    assert refused_again.status_code in (409, 503)
    booked = made(world.admin.post("/v1/ledger/reconcile", json={"reason": "r"}))
    assert booked["forfeited"] == 1
    reply = ask(world.client(person), count("people", "0.1"), key)
    assert reply.status_code == 503
    assert reply.json()["type"] == "/problems/question-forfeited"
    assert first["value"] is not None
    assert world.spent("people", "ada") == Decimal("0.1")
    world.must_be_sound()


def test_streams_of_a_restored_ledger_are_closed(world: World, copies: Copies) -> None:
    client = world.client("ada")
    stream = made(open_stream(client, above_threshold("people", "0.2", crossings=3)))["id"]
    made(ask_stream(client, stream))
    world.ledger.stop()
    backup = copies.take()
    world.serve()
    made(ask_stream(world.client("ada"), stream))
    world.ledger.stop()
    copies.restore(backup)
    world.serve()
    refused(ask_stream(world.client("ada"), stream))
    booked = made(world.admin.post("/v1/ledger/reconcile", json={"reason": "r"}))
    assert booked["streams_closed"] == 1
    reply = ask_stream(world.client("ada"), stream)
    assert reply.status_code == 409
    assert reply.json()["type"] == "/problems/stream-ended"
    world.must_be_sound()


def test_data_whose_whole_book_was_lost_get_their_old_loss_back(
    world: World, copies: Copies
) -> None:
    world.server  # noqa: B018  # started
    world.ledger.stop()
    backup = copies.take()
    world.serve()
    path = world.write_csv([[30, 10, "north", "true", "2021-01-01"]] * 5)
    dataset = world.dataset(path)
    world.grant(dataset, "*", 10)
    world.grant(dataset, "ada", 2)
    spend(world.client("ada"), "0.75", dataset=dataset)
    world.ledger.stop()
    copies.restore(backup)
    world.serve()
    refused(world.admin.post("/v1/datasets", json=card(path)))
    made(world.admin.post("/v1/ledger/reconcile", json={"reason": "r"}))
    again = world.dataset(path)
    assert world.spent(again, "ada") == Decimal("0.75")
    assert world.spent(again, "*") == Decimal("0.75")
    assert exact(world.budget(again, "ada")["limit"]) == 2
    spend(world.client("ada"), "0.25", dataset=again)
    assert world.spent(again, "*") == 1
    world.must_be_sound()


def test_a_crash_between_a_commit_and_its_anchor_is_no_rollback(world: World) -> None:
    spend(world.client("ada"), "0.1")
    world.ledger.stop()
    world.serve(fault="F3=kill", lease_seconds=1)
    key = new_key()
    with pytest.raises(httpx.TransportError):
        ask(world.client("ada"), count("people", "0.2"), key)
    world.server.wait_dead()
    server = world.serve(lease_seconds=1)
    assert "behind" not in server.output()
    made(ask_until_settled(world.client("ada"), count("people", "0.2"), key))
    spend(world.client("ada"), "0.1")
    assert world.spent("people", "ada") == Decimal("0.4")
    world.must_be_sound()


def test_a_server_killed_many_times_is_never_behind_its_anchors(world: World) -> None:
    for _ in range(3):
        spend(world.client("ada"), "0.01", 5)
        world.server.kill()
        assert "behind" not in world.serve().output()
    world.must_be_sound()


def test_a_home_without_anchors_and_torn_or_foreign_lines_are_no_rollback(world: World) -> None:
    spend(world.client("ada"), "0.1")
    world.ledger.stop()
    anchors = world.ledger.home / "anchors"
    (files,) = [path for path in anchors.iterdir() if path.is_dir()]
    for path in files.glob("*.anchor"):
        with path.open("ab") as file:
            file.write(b'\0\0\0\n{"book":"b_1"}\nnot JSON\n[1]\n{"book":"b_nowhere","seq":9')
    world.serve()
    spend(world.client("ada"), "0.1")
    world.must_be_sound()
    world.ledger.stop()
    shutil.rmtree(anchors)
    world.serve()
    spend(world.client("ada"), "0.1")
    assert world.must_be_sound()["anchors"]["points"] > 0


def test_anchors_of_another_ledger_are_recognized(
    world: World, store_kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A new ledger in the same home is not compared with entries of the old one."""
    spend(world.client("ada"), "0.1")
    world.ledger.stop()
    postgres = request.getfixturevalue("postgres") if store_kind == "postgresql" else None
    ledger = new_ledger(store_kind, tmp_path / "other", world.ledger.data, postgres)
    for path in (world.ledger.home / "anchors").iterdir():
        shutil.copytree(path, ledger.home / "anchors" / path.name)
    other = World(ledger)
    try:
        other.person("ada")
        report = other.must_be_sound()
    finally:
        ledger.stop()
    assert report["not_covered"] == {"anchors of other ledgers": 1}


def test_a_second_anchor_folder_holds_the_same_anchors(
    world: World, copies: Copies, tmp_path: Path
) -> None:
    """It reveals a rollback even if the ledger was restored together with its home."""
    second = tmp_path / "elsewhere"
    world.ledger.stop()
    world.serve(BURSAR_ANCHOR=str(second))
    world.ledger.stop()
    backup = copies.take()
    world.serve(BURSAR_ANCHOR=str(second))
    spend(world.client("ada"), "0.1")
    world.ledger.stop()
    copies.restore(backup)
    shutil.rmtree(world.ledger.home / "anchors")
    world.serve(BURSAR_ANCHOR=str(second))
    refused(ask(world.client("ada"), count("people", "0.1"), new_key()))
    made(world.admin.post("/v1/ledger/reconcile", json={"reason": "r"}))
    assert world.spent("people", "ada") == Decimal("0.1")
    world.must_be_sound()


def test_an_anchor_folder_that_cannot_be_written_stops_the_start(
    world: World, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(RuntimeError, match="BURSAR_ANCHOR"):
        world.ledger.serve(BURSAR_ANCHOR=str(blocked / "below"))


def on_postgres(peopled: Template, postgres: PostgresServer, folder: Path) -> tuple[World, Copies]:
    world = peopled("postgresql", folder / "ledger")
    return world, Copies(world.ledger, postgres, folder / "copies")


def test_every_server_books_the_losses_of_its_own_anchors(
    peopled: Template, postgres: PostgresServer, tmp_path: Path
) -> None:
    """Each of two servers has its own home.

    The second starts only after the first has booked the loss it knew. It adds the loss that only
    its own anchors hold.
    """
    world, copies = on_postgres(peopled, postgres, tmp_path)
    ada = world.people["ada"].key
    try:
        homes = [str(tmp_path / name) for name in ("one", "two")]
        for home in homes:
            spend(world.serve(BURSAR_HOME=home).client(ada), "0.1")
        world.ledger.stop()
        backup = copies.take()
        one, two = (world.ledger.serve(BURSAR_HOME=home) for home in homes)
        for server, epsilon in ((one, "0.01"), (two, "0.02"), (one, "0.03"), (two, "0.04")):
            spend(server.client(ada), epsilon)
        world.ledger.stop()
        copies.restore(backup)

        world.serve(BURSAR_HOME=homes[0])
        refused(ask(world.client("ada"), count("people", "0.1", fresh=True), new_key()))
        made(world.admin.post("/v1/ledger/reconcile", json={"reason": "one"}))
        assert world.spent("people", "ada") == Decimal("0.26"), "the loss up to its own last charge"
        spend(world.client("ada"), "0.001")

        second = world.ledger.serve(BURSAR_HOME=homes[1])
        assert "behind" in second.output()
        question = count("people", "0.001", fresh=True)
        refused(ask(second.client(ada), question, new_key()))
        refused(ask(world.client("ada"), question, new_key()))
        made(world.admin.post("/v1/ledger/reconcile", json={"reason": "two"}))
        assert world.spent("people", "ada") == world.spent("people", "*") == Decimal("0.301")
        spend(second.client(ada), "0.001")
        spend(world.client("ada"), "0.001")
        world.must_be_sound()
        world.ledger.stop()
        for home in homes:
            assert "behind" not in world.serve(BURSAR_HOME=home).output()
    finally:
        world.ledger.stop()


def test_a_running_server_notices_a_restored_ledger(
    peopled: Template, postgres: PostgresServer, tmp_path: Path
) -> None:
    """The same happens after a failover to a standby that lacks the last commits."""
    world, copies = on_postgres(peopled, postgres, tmp_path)
    try:
        spend(world.client("ada"), "0.1")
        world.ledger.stop()
        backup = copies.take()
        client = world.serve().client(world.people["ada"].key)
        spend(client, "0.1", 2)
        copies.restore(backup)
        refused(ask(client, count("people", "0.1", fresh=True), new_key()))
        assert not made(world.admin.get("/v1/ledger/verify"))["sound"]
        made(world.admin.post("/v1/ledger/reconcile", json={"reason": "failover"}))
        assert world.spent("people", "ada") == Decimal("0.3")
        spend(client, "0.1", 3)
        world.must_be_sound()
        for _ in range(2):
            restart(world)
            assert "behind" not in world.server.output()
        world.must_be_sound()
    finally:
        world.ledger.stop()


def test_several_workers_share_the_anchors(world: World, copies: Copies) -> None:
    world.ledger.stop()
    world.serve(BURSAR_WORKERS="2")
    for _ in range(6):
        spend(world.client("ada"), "0.01")
    world.must_be_sound()
    world.ledger.stop()
    backup = copies.take()
    world.serve(BURSAR_WORKERS="2")
    for _ in range(8):
        spend(world.client("ada"), "0.01")  # each on its own connection, by any worker
    world.ledger.stop()
    copies.restore(backup)
    world.serve(BURSAR_WORKERS="2")
    for _ in range(3):
        refused(ask(world.client("ada"), count("people", "0.1", fresh=True), new_key()))
    made(world.admin.post("/v1/ledger/reconcile", json={"reason": "r"}))
    assert world.spent("people", "ada") == Decimal("0.14")
    for _ in range(6):
        spend(world.client("ada"), "0.01")
    assert world.spent("people", "ada") == Decimal("0.2")
    world.must_be_sound()


def test_lost_spend_of_cells_and_curves_is_booked_on_the_same_cells_and_curves(
    world: World, copies: Copies
) -> None:
    dataset = world.dataset(cells={"column": "region"})
    wish = {"currency": "renyi", "epsilon": 5, "delta": 1e-6}
    for holder in ("*", "ada"):
        made(world.admin.put(f"/v1/datasets/{dataset}/budgets/{holder}", json=wish))

    def ask_region(region: str) -> None:
        where = {"column": "region", "op": "==", "value": region}
        body = count(dataset, 0.1, fresh=True) | {"query": {"kind": "count", "where": where}}
        made(ask(world.client("ada"), body, new_key()))

    ask_region("north")
    world.ledger.stop()
    backup = copies.take()
    world.serve()
    ask_region("north")
    ask_region("south")
    spend(world.client("ada"), "0.2", dataset=dataset)
    before = account_lines(world, dataset)
    world.ledger.stop()
    copies.restore(backup)
    world.serve()
    assert account_lines(world, dataset) != before
    made(world.admin.post("/v1/ledger/reconcile", json={"reason": "r"}))
    assert account_lines(world, dataset) == before
    world.must_be_sound()
    ask_region("south")
    world.must_be_sound()


def account_lines(world: World, dataset: str) -> list[str]:
    reply = world.admin.get("/v1/ledger/export", params={"dataset": dataset})
    return [line for line in reply.text.splitlines() if '"type":"account"' in line]


def test_a_lost_spend_follows_data_registered_again_before_the_rollback_was_noticed(
    world: World, copies: Copies
) -> None:
    world.server  # noqa: B018  # started
    world.ledger.stop()
    backup = copies.take()
    world.serve()
    path = world.write_csv([[31, 11, "south", "true", "2021-01-02"]] * 5)
    dataset = world.dataset(path)
    world.grant(dataset, "*", 10)
    world.grant(dataset, "ada", 2)
    spend(world.client("ada"), "0.75", dataset=dataset)
    world.ledger.stop()
    anchors, aside = world.ledger.home / "anchors", world.ledger.home / "aside"
    anchors.rename(aside)
    copies.restore(backup)
    world.serve()
    again = world.dataset(path)
    world.grant(again, "*", 10)
    world.grant(again, "ada", 2)
    spend(world.client("ada"), "0.25", dataset=again)
    for file in aside.glob("*/*.anchor"):
        shutil.copy(file, anchors / file.parent.name)
    assert not made(world.admin.get("/v1/ledger/verify"))["sound"]
    made(world.admin.post("/v1/ledger/reconcile", json={"reason": "r"}))
    assert world.spent(again, "ada") == world.spent(again, "*") == 1
    world.must_be_sound()


def test_a_lost_change_of_currency_is_restored(world: World, copies: Copies) -> None:
    spend(world.client("ada"), "0.1")
    world.ledger.stop()
    backup = copies.take()
    world.serve()
    wish = {"currency": "renyi", "epsilon": 5, "delta": 1e-6}
    made(world.admin.put("/v1/datasets/people/budgets/ada", json=wish))
    spend(world.client("ada"), "0.2")
    before = [line for line in account_lines(world, "people") if '"holder":"ada"' in line]
    world.ledger.stop()
    copies.restore(backup)
    world.serve()
    made(world.admin.post("/v1/ledger/reconcile", json={"reason": "r"}))
    after = [line for line in account_lines(world, "people") if '"holder":"ada"' in line]
    assert after == before, "the account has its lost terms again"
    assert world.spent("people", "*") == Decimal("0.3")
    world.must_be_sound()
    spend(world.client("ada"), "0.1")
    world.must_be_sound()


NEWEST = "(SELECT max(id) FROM charges)"
LAST_ENTRY = "kind = 'charge' AND seq = (SELECT max(seq) FROM entries WHERE kind = 'charge')"
TAIL_CUTS = {
    "the last answer made open again": [
        "UPDATE charges SET state = 'charged', answer = NULL, settled_at = NULL, stamp = NULL "
        f"WHERE id = {NEWEST}"
    ],
    # Delete the entry, its row, the spends and the chain head, so that the rest is consistent.
    "the last charge taken out everywhere": [
        f"DELETE FROM entries WHERE {LAST_ENTRY}",
        f"DELETE FROM charges WHERE id = {NEWEST}",
        "UPDATE accounts SET epsilon_spent = epsilon_spent - 100000000000, version = version - 1 "
        "WHERE epsilon_spent > 0",
        "UPDATE books SET seq = seq - 1, head = (SELECT hash FROM entries WHERE book_id = books.id "
        "AND seq = books.seq - 1) WHERE id = (SELECT book_id FROM entries WHERE kind = 'charge' "
        "LIMIT 1)",
    ],
}


@pytest.mark.invariant("I35")
@pytest.mark.saboteur
@pytest.mark.parametrize("what", TAIL_CUTS)
def test_the_anchor_reveals_a_truncated_tail(world: World, what: str) -> None:
    spend(world.client("ada"), "0.1", 3)
    world.ledger.stop()
    trigger = "entries_no_delete" if world.ledger.database is None else "entries_append_only"
    place = "" if world.ledger.database is None else " ON entries"
    for statement in (f"DROP TRIGGER {trigger}{place}", *TAIL_CUTS[what]):
        world.ledger.change(statement)
    aside = world.ledger.home / "aside"
    (world.ledger.home / "anchors").rename(aside)
    assert "sound" in world.ledger.bursard("verify").stdout, (
        "nothing reveals it without the anchors"
    )
    shutil.rmtree(world.ledger.home / "anchors")
    aside.rename(world.ledger.home / "anchors")
    server = world.serve()
    assert "behind its anchors" in server.output()
    refused(ask(world.client("ada"), count("people", "0.1", fresh=True), new_key()))
    made(world.admin.post("/v1/ledger/reconcile", json={"reason": "somebody cut it"}))
    assert world.spent("people", "ada") == world.spent("people", "*") == Decimal("0.3")
    world.must_be_sound()
