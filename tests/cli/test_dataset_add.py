"""`bursard dataset add`, run as an operator runs it."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from tests.bursard import CHECKOUT, MAIN, Ledger, environment_with, wait_until
from tests.cli.dataset_commands import add, entries, write_card, write_csv
from tests.cli.running import Done
from tests.server import COLUMNS


def test_a_card_is_registered_in_the_name_of_the_operator(store: Ledger, tmp_path: Path) -> None:
    write_csv(store.data / "people.csv")
    done = store.bursard("dataset", "add", "people.csv", "--card", str(write_card(tmp_path)))
    lines = done.stdout.splitlines()
    name, version, fingerprint = lines[0].split(", ")
    assert (name, version) == ("people", "version 1")
    assert "/v1/datasets/people/budgets/" in done.stdout
    server = store.serve()
    admin = server.client(store.admin_key)
    shown = admin.get("/v1/datasets/people").json()
    assert shown["source"] == {"engine": "duckdb", "path": "people.csv"}
    assert f"fingerprint {shown['fingerprint']}" == fingerprint
    [entry] = admin.get("/v1/ledger?dataset=people").json()["items"]
    assert (entry["kind"], entry["actor"]) == ("dataset_registered", "operator")
    assert admin.get("/v1/ledger/verify").json()["sound"]


def test_a_card_may_name_a_public_table(ledger: Ledger, tmp_path: Path) -> None:
    write_csv(ledger.data / "people.csv")
    table = ledger.data / "areas.csv"
    table.write_text("region,area\nnorth,rural\nsouth,urban\nnorth,urban\n")
    looked_up = {"path": "areas.csv", "key": "region", "value": "area"}
    area = {
        "name": "area",
        "type": "category",
        "values": ["rural", "urban"],
        "derived": {"lookup": {"column": "region", "table": looked_up}},
    }
    card_path = str(write_card(tmp_path, columns=[*COLUMNS, area]))
    refused = add("people.csv", "--card", card_path)
    assert refused.returncode == 2
    assert f"/columns/{len(COLUMNS)}/derived/lookup/table/key: " in refused.stderr
    own = json.loads(Path(card_path).read_text())
    own["columns"][-1]["derived"]["lookup"]["table"]["path"] = "people.csv"
    Path(card_path).write_text(json.dumps(own))
    assert "a file that is not a dataset's" in add("people.csv", "--card", card_path).stderr

    table.write_text("region,area\nnorth,rural\nsouth,urban\n")
    write_card(tmp_path, columns=[*COLUMNS, area])
    assert add("people.csv", "--card", card_path).returncode == 0
    ((stored,),) = ledger.rows("SELECT card FROM datasets")
    map_stored = json.loads(stored)["columns"][-1]["derived"]["lookup"]["map"]
    assert map_stored == {"north": "rural", "south": "urban"}

    Path(card_path).write_text(json.dumps(own))  # people.csv now holds the rows of another dataset
    write_csv(ledger.data / "others.csv")
    assert "a file that is not a dataset's" in add("others.csv", "--card", card_path).stderr


def test_a_taken_name_is_reported_before_any_conversion(ledger: Ledger, tmp_path: Path) -> None:
    given = str(write_card(tmp_path))
    write_csv(ledger.data / "people.csv")
    assert add("people.csv", "--card", given).returncode == 0
    taken = add(str(write_csv(tmp_path / "people.csv")), "--card", given, "--to-parquet")
    assert taken == Done(2, "", "bursard: A dataset of this name is registered.\n")
    assert [path.name for path in ledger.data.iterdir()] == ["people.csv"]


def test_a_csv_from_outside_is_converted_and_has_the_same_loss(
    ledger: Ledger, tmp_path: Path
) -> None:
    outside = write_csv(tmp_path / "people.csv")
    card_path = str(write_card(tmp_path, name="census", description="Persons"))
    refused = add(str(outside), "--card", card_path)
    assert refused.returncode == 2
    assert "--to-parquet writes a copy there" in refused.stderr
    done = add(str(outside), "--card", card_path, "--to-parquet")
    assert "census, version 1" in done.stdout, done.stderr
    assert [path.name for path in ledger.data.iterdir()] == ["people.parquet"]
    (ledger.data / "same.csv").write_bytes(outside.read_bytes())
    assert add("same.csv", "--name", "same", "--card", card_path).returncode == 0
    first, second = entries(ledger)
    assert first["body"]["after"]["source"]["path"] == "people.parquet"
    assert first["book"] == second["book"]
    prints = [entry["body"]["after"]["fingerprint"] for entry in (first, second)]
    assert prints[0] == prints[1]


def test_a_folder_is_added_by_its_name(ledger: Ledger, tmp_path: Path) -> None:
    folder = ledger.data / "parts"
    folder.mkdir()
    write_csv(tmp_path / "rows.csv")
    with duckdb.connect() as connection:
        for part in (0, 1):
            connection.execute(
                f"COPY (SELECT * FROM read_csv('{tmp_path}/rows.csv') WHERE age % 2 = {part}) "
                f"TO '{folder}/{part}.parquet' (FORMAT parquet)"
            )
    done = add(str(folder), "--card", str(write_card(tmp_path)))
    assert done.stdout.startswith("parts, version 1, ")
    assert entries(ledger)[0]["body"]["after"]["source"]["path"] == "parts"


def test_without_a_terminal_the_command_writes_a_draft_to_fill_in(
    ledger: Ledger, tmp_path: Path
) -> None:
    rows = [["SECRET-1", "SECRET-2", "SECRET-3", "SECRET-4"]]
    path = ledger.data / "people.csv"
    lines = [",".join(row) for row in [["age", "is_smoker", "seen_at", "region"], *rows]]
    path.write_text("\n".join(lines) + "\n")
    done = add("people.csv", "--infer-types", "--yes")
    assert done.returncode == 2
    draft_path = ledger.data / "people.csv.card.json"
    draft = json.loads(draft_path.read_text())
    assert [column["type"] for column in draft["columns"]] == [None, "boolean", "date", None]
    for place in ("/person", "/neighbours", "/columns/0/type", "/columns/2/low", "/columns/3/type"):
        assert place in done.stderr
    assert "SECRET" not in done.stdout + done.stderr + draft_path.read_text()
    again = add("people.csv", "--infer-types", "--yes")
    assert (again.returncode, "exists already" in again.stderr) == (2, True)
    unfilled = add("people.csv", "--card", str(draft_path))
    assert unfilled.returncode == 2
    assert "/columns/0/type: one of" in unfilled.stderr

    draft |= {"person": {"kind": "row"}, "neighbours": "add_remove"}
    draft["columns"][0] |= {"type": "integer", "low": 0, "high": 120}
    draft["columns"][2] |= {"low": "2020-01-01", "high": "2025-12-31"}
    draft["columns"][3] |= {"type": "text"}
    draft_path.write_text(json.dumps(draft))
    done = add("people.csv", "--card", str(draft_path))
    assert done.returncode == 0
    assert "SECRET" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["people.csv"], 2, "either --infer-types or --card"),
        (["people.csv", "--infer-types", "--card", "{card}"], 2, "either --infer-types or --card"),
        (["nowhere.csv", "--card", "{card}"], 2, "nowhere.csv: not a .csv or .parquet file"),
        (["/etc/passwd", "--card", "{card}"], 2, "/etc/passwd: not a .csv or .parquet file"),
        (["ragged.csv", "--card", "{card}"], 2, "/source/path: a file that is what its name says"),
        (["ragged.csv", "--card", "{card}", "--to-parquet"], 1, "cannot be read as the CSV"),
        (["people.parquet", "--card", "{card}", "--to-parquet"], 2, "is for .csv files"),
        (
            ["other.csv", "--card", "{card}", "--to-parquet"],
            2,
            "/columns/0/name: the source has no column",
        ),
        (["people.csv", "--card", "{none}"], 2, "No such file"),
        (["people.csv", "--card", "{csv}"], 2, "not valid JSON"),
        (["people.csv", "--card", "{card}", "--name", "a/b"], 2, "/name: a name must not"),
    ],
)
def test_an_error_is_reported_and_nothing_is_left(
    ledger: Ledger, tmp_path: Path, words: list[str], code: int, message: str
) -> None:
    people = write_csv(ledger.data / "people.csv")
    (ledger.data / "ragged.csv").write_text(people.read_text() + "SECRET,2\n")
    (ledger.data / "other.csv").write_text("SECRETLESS\n1\n")
    before = sorted(ledger.data.iterdir())
    places = {"{card}": write_card(tmp_path), "{none}": tmp_path / "none", "{csv}": people}
    arguments = [str(places.get(word, word)) for word in words]
    if "--to-parquet" in words:
        arguments[0] = str(ledger.data / arguments[0])
    done = add(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert "SECRET" not in done.stderr.replace("SECRETLESS", "")
    assert sorted(ledger.data.iterdir()) == before


# During the conversion: the file is being written, and its rows never end.
ENDLESS = """
import dataclasses
from app.engines.files import convert
opened = convert.open_table
def endless(*given):
    table = opened(*given)
    rows = f"(SELECT * FROM {table.relation}, range(1e15::BIGINT)) AS endless"
    return dataclasses.replace(table, relation=rows)
convert.open_table = endless
"""


def test_ctrl_c_in_a_conversion_leaves_nothing(ledger: Ledger, tmp_path: Path) -> None:
    big = write_csv(tmp_path / "big.csv")
    words = ("dataset", "add", str(big), "--to-parquet", "--card", str(write_card(tmp_path)))
    process = subprocess.Popen(
        [sys.executable, "-c", f"{ENDLESS}\n{MAIN}", *words],
        cwd=CHECKOUT,
        env=environment_with(ledger.environment()),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: bool(list(ledger.data.iterdir())), 60, "the command has written nothing")
        assert [path.name for path in ledger.data.iterdir()] == [f".big.parquet.{process.pid}"]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()  # it would never end by itself
    assert (process.returncode, out) == (130, "")
    assert err.endswith("Stopped: nothing was registered.\n")
    assert list(ledger.data.iterdir()) == []
    assert entries(ledger) == []
