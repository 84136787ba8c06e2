"""The ledger over HTTP and offline: paging, export, verification, and saboteurs it must name."""

import contextlib
import hashlib
import itertools
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from app.ledger.verification.lines import from_lines
from app.ledger.verification.verify import verify
from app.store.connect import Database
from app.store.history.history import SqlHistory
from tests.conftest import Template
from tests.server import Json, World, ask, count, made, new_key


@pytest.fixture
def story(world: World) -> World:
    """A ledger with charges, grants and people."""
    client = world.client("ada")
    for _ in range(5):
        made(ask(client, count("people", 0.1, fresh=True), new_key()))
    assert ask(client, count("people", 5), new_key()).status_code == 402
    world.grant("people", "ada", 2)
    return world


def export(world: World) -> list[str]:
    reply = world.admin.get("/v1/ledger/export")
    assert reply.headers["content-type"].startswith("application/x-ndjson")
    return reply.text.splitlines()


def verify_file(world: World, lines: list[str], folder: Path) -> tuple[int, str]:
    path = folder / "export.ndjson"
    path.write_text("".join(line + "\n" for line in lines))
    ran = world.ledger.bursard("verify", "--file", str(path), check=False)
    return ran.returncode, ran.stdout + ran.stderr


def test_anyone_with_a_hash_function_can_follow_the_chain(story: World) -> None:
    entries = story.entries("people")
    assert [entry["seq"] for entry in entries] == list(range(1, len(entries) + 1))
    previous = "0" * 64
    for entry in entries:
        previous = hashlib.sha256(f"{previous}\n{entry['text']}".encode()).hexdigest()
        assert entry["hash"] == previous
        assert json.loads(entry["text"])["body"] == entry["body"]
    kinds = [entry["kind"] for entry in entries]
    assert kinds == ["dataset_registered", *["grant"] * 3, *["charge"] * 5, "grant"]
    times = [entry["at"] for entry in entries]
    assert times == sorted(times)


def test_pages_of_the_whole_ledger_have_no_gap_and_no_repetition(story: World) -> None:
    places = [(item["book"], item["seq"]) for item in story.pages("/v1/ledger", limit=3)]
    assert len(places) == len(set(places)) == story.must_be_sound()["entries"]
    assert story.admin.get("/v1/ledger", params={"dataset": "nothing"}).status_code == 404
    assert {item["book"] for item in story.entries("system")} == {"system"}


def test_a_whole_export_and_a_part_of_it_verify_offline(story: World, tmp_path: Path) -> None:
    lines = export(story)
    code, said = verify_file(story, lines, tmp_path)
    assert code == 0, said
    assert "sound" in said
    reply = story.admin.get("/v1/ledger/export", params={"dataset": "people"})
    code, said = verify_file(story, reply.text.splitlines(), tmp_path)
    assert code == 0, said
    assert story.ledger.bursard("export").stdout.splitlines() == lines
    assert "sound" in story.ledger.bursard("verify").stdout


def kinds_of(lines: list[str]) -> list[str]:
    """Kind of each line: the kind of an entry, or the type of another line."""
    loaded = [json.loads(line) for line in lines]
    return [
        json.loads(line["text"])["kind"] if line["type"] == "entry" else f"line {line['type']}"
        for line in loaded
    ]


def changed(line: str, change: Callable[[Json], None]) -> str:
    loaded = json.loads(line)
    change(loaded)
    return json.dumps(loaded, sort_keys=True, separators=(",", ":"))


def edit_an_entry(lines: list[str]) -> list[str]:
    at = kinds_of(lines).index("charge")

    def cheaper(line: Json) -> None:
        said = json.loads(line["text"])
        said["body"]["epsilon"] = 1
        line["text"] = json.dumps(said, sort_keys=True, separators=(",", ":"))

    return [*lines[:at], changed(lines[at], cheaper), *lines[at + 1 :]]


def edit_an_entry_and_forge_its_hash(lines: list[str]) -> list[str]:
    at = kinds_of(lines).index("charge")
    before = json.loads(lines[at - 1])["hash"]
    (edited,) = set(edit_an_entry(lines)) - set(lines)

    def forged(line: Json) -> None:
        line["hash"] = hashlib.sha256(f"{before}\n{line['text']}".encode()).hexdigest()

    return [*lines[:at], changed(edited, forged), *lines[at + 1 :]]


def remove_an_entry(lines: list[str]) -> list[str]:
    at = kinds_of(lines).index("charge")
    return lines[:at] + lines[at + 1 :]


def swap_two_entries(lines: list[str]) -> list[str]:
    at = kinds_of(lines).index("charge")
    return [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]]


def repeat_an_entry(lines: list[str]) -> list[str]:
    at = kinds_of(lines).index("charge")
    return [*lines[: at + 1], lines[at], *lines[at + 1 :]]


def cut_the_tail_of_a_book(lines: list[str]) -> list[str]:
    charges = [i for i, kind in enumerate(kinds_of(lines)) if kind == "charge"]
    book = json.loads(json.loads(lines[charges[-1]])["text"])["book"]
    entries = [i for i, line in enumerate(lines) if f'\\"book\\":\\"{book}' in line]
    return lines[: entries[-1]] + lines[entries[-1] + 1 :]


def lower_a_spend(lines: list[str]) -> list[str]:
    at = next(i for i, line in enumerate(lines) if '"holder":"ada"' in line and "account" in line)

    def cheaper(line: Json) -> None:
        line["spent"] = [0, 0]

    return [*lines[:at], changed(lines[at], cheaper), *lines[at + 1 :]]


def raise_a_limit(lines: list[str]) -> list[str]:
    at = next(i for i, line in enumerate(lines) if '"holder":"ada"' in line and "account" in line)

    def richer(line: Json) -> None:
        line["terms"]["limits"] = [10**18, 0]

    return [*lines[:at], changed(lines[at], richer), *lines[at + 1 :]]


def remove_an_account(lines: list[str]) -> list[str]:
    return [line for line in lines if not ('"type":"account"' in line and '"ada"' in line)]


def remove_the_end_of_a_book(lines: list[str]) -> list[str]:
    at = kinds_of(lines).index("line book")
    return lines[:at] + lines[at + 1 :]


def remove_a_charge(lines: list[str]) -> list[str]:
    at = kinds_of(lines).index("line charge")
    return lines[:at] + lines[at + 1 :]


def settle_a_charge_otherwise(lines: list[str]) -> list[str]:
    at = kinds_of(lines).index("line charge")
    voided = changed(lines[at], lambda line: line.update(state="voided"))
    return [*lines[:at], voided, *lines[at + 1 :]]


def make_a_charge_cheaper(lines: list[str]) -> list[str]:
    at = kinds_of(lines).index("line charge")
    cheaper = changed(lines[at], lambda line: line.update(epsilon=1))
    return [*lines[:at], cheaper, *lines[at + 1 :]]


def cut_the_last_line(lines: list[str]) -> list[str]:
    return lines[:-1]


def cut_after_the_entries(lines: list[str]) -> list[str]:
    return lines[: kinds_of(lines).index("line book")]


SABOTEURS = [
    remove_a_charge,
    settle_a_charge_otherwise,
    make_a_charge_cheaper,
    cut_the_last_line,
    cut_after_the_entries,
    edit_an_entry,
    edit_an_entry_and_forge_its_hash,
    remove_an_entry,
    swap_two_entries,
    repeat_an_entry,
    cut_the_tail_of_a_book,
    lower_a_spend,
    raise_a_limit,
    remove_an_account,
    remove_the_end_of_a_book,
]


@pytest.mark.invariant("I35")
@pytest.mark.saboteur
def test_verification_catches_every_saboteur_of_an_export(live: World, tmp_path: Path) -> None:
    client = live.client("ada")
    for _ in range(3):
        made(ask(client, count("people", 0.1, fresh=True), new_key()))
    lines = export(live)
    spoilt: list[str] = []
    for saboteur in SABOTEURS:
        spoilt = saboteur(lines)
        assert spoilt != lines
        assert not verify(from_lines(spoilt)).sound, saboteur.__name__
    assert verify(from_lines(lines)).sound
    code, said = verify_file(live, spoilt, tmp_path)  # the last one, by the command
    assert code == 1
    assert "findings" in said


@pytest.mark.invariant("I35")
def test_a_truncated_export_is_not_sound(live: World, tmp_path: Path) -> None:
    made(ask(live.client("ada"), count("people", 0.001, fresh=True), new_key()))
    lines = export(live)
    assert verify(from_lines(lines)).sound
    for length in range(1, len(lines)):
        assert not verify(from_lines(lines[:length])).sound, f"{length} of {len(lines)} lines"
    path = tmp_path / "export.ndjson"
    whole = "".join(line + "\n" for line in lines)
    for cut in (len(lines[-1]) + 1, len(lines[-1]) // 2, 2):  # at the end of a line, and within one
        path.write_text(whole[:-cut])
        ran = live.ledger.bursard("verify", "--file", str(path), check=False)
        assert ran.returncode == 1, cut
        assert "Traceback" not in ran.stderr
    path.write_text(whole)
    assert live.ledger.bursard("verify", "--file", str(path)).returncode == 0


def test_a_file_that_is_no_export_is_refused_with_one_line(live: World, tmp_path: Path) -> None:
    for lines in (["this is no JSON"], ['{"type":"entry"}'], ["[1, 2]"], ['{"type":"entry","text":"{}","hash":""}']):  # fmt: skip  # noqa: E501
        code, said = verify_file(live, lines, tmp_path)
        assert code == 1
        assert "Traceback" not in said, said


EDITS = {
    "an entry edited": "UPDATE entries SET text = replace(text, '\"epsilon\":100000000000', "
    "'\"epsilon\":100000000') WHERE kind = 'charge' AND seq = (SELECT min(seq) FROM entries "
    "WHERE kind = 'charge')",
    "an entry removed": "DELETE FROM entries WHERE kind = 'charge' AND seq = (SELECT min(seq) "
    "FROM entries WHERE kind = 'charge')",
    "the tail removed": "DELETE FROM entries WHERE kind = 'charge' AND seq = (SELECT max(seq) "
    "FROM entries WHERE kind = 'charge')",
    "a time set back": "UPDATE entries SET at = 1 WHERE kind = 'charge'",
    "a spend lowered": "UPDATE accounts SET epsilon_spent = 0 WHERE holder = 'ada'",
    "a limit raised": "UPDATE accounts SET terms = replace(terms, '[', '[9') WHERE holder = 'ada'",
    "an account removed": "DELETE FROM accounts WHERE holder = 'ada'",
}


@pytest.mark.invariant("I35")
@pytest.mark.saboteur
def test_verification_names_every_saboteur_of_the_database(
    peopled: Template, tmp_path: Path
) -> None:
    world = peopled("sqlite", tmp_path / "ledger")
    for _ in range(2):
        made(ask(world.client("ada"), count("people", 0.1, fresh=True), new_key()))
    world.ledger.stop()
    path = world.ledger.sqlite_path
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")  # everything in one file
    sound = path.read_bytes()
    for what, edit in EDITS.items():
        path.write_bytes(sound)
        with contextlib.closing(sqlite3.connect(path)) as connection:
            with pytest.raises(sqlite3.IntegrityError):
                connection.execute("DELETE FROM entries")  # the triggers guard the entries
            names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
            for (name,) in names.fetchall():
                connection.execute(f"DROP TRIGGER {name}")
            assert connection.execute(edit).rowcount > 0, what
            connection.commit()
        database = Database(f"sqlite:///{path}")
        assert not verify(SqlHistory(database).snapshot(None)).sound, what
        database.engine.dispose()
        for log in path.parent.glob("ledger.db-*"):
            log.unlink()
    ran = world.ledger.bursard("verify", check=False)  # the last one, by the command
    assert ran.returncode == 1
    assert "findings" in ran.stdout
    path.write_bytes(sound)
    assert "sound" in world.ledger.bursard("verify").stdout


@pytest.mark.invariant("I35")
@pytest.mark.saboteur
def test_the_running_server_names_a_saboteur_too(world: World) -> None:
    made(ask(world.client("ada"), count("people", 0.1), new_key()))
    world.ledger.change("UPDATE accounts SET epsilon_spent = 7 WHERE holder = 'ada'")
    report = made(world.admin.get("/v1/ledger/verify"))
    assert not report["sound"]
    (finding,) = report["findings"]
    assert finding["account"] == "ada"
    assert "sum of the entries" in finding["problem"]


def test_every_administrative_change_is_an_entry_with_actor_before_and_after(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person)
    made(live.admin.patch(f"/v1/analysts/{person.name}", json={"enabled": False, "reason": "r1"}))
    made(live.admin.patch(f"/v1/datasets/{dataset}", json={"description": "d", "reason": "r2"}))
    live.grant(dataset, person.name, 3, reason="r3")
    (key,) = made(live.admin.get(f"/v1/analysts/{person.name}"))["keys"]
    live.admin.delete(f"/v1/keys/{key['id']}", params={"reason": "r4"})
    entries = live.entries("system") + live.entries(dataset)
    for reason, kind in (
        ("r1", "analyst_changed"),
        ("r2", "dataset_changed"),
        ("r3", "grant"),
        ("r4", "key_revoked"),
    ):
        (entry,) = [entry for entry in entries if entry["body"].get("reason") == reason]
        assert (entry["kind"], entry["actor"]) == (kind, "admin")
        assert {"before", "after"} <= set(entry["body"])


def test_forged_cursors_are_refused(live: World) -> None:
    paths = ("/v1/ledger", "/v1/queries", "/v1/datasets", "/v1/analysts", "/v1/budgets")
    cursors = ("x", "e30", "W10", "\u00e9", "WzEsImEiLDk5OTk5OTk5OTk5OTk5OTk5OTk5OTld")
    for path, cursor in itertools.product(paths, cursors):
        reply = live.admin.get(path, params={"cursor": cursor})
        assert reply.status_code == 422, (path, cursor)
        assert reply.json()["errors"][0]["pointer"] == "/cursor"
    for limit in ("0", "201", "-1", "x", "1e3", "9" * 30):
        assert live.admin.get("/v1/ledger", params={"limit": limit}).status_code == 422
