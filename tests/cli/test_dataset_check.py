"""`bursard dataset check`: private figures on the terminal, and nowhere else."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.cli import cli
from tests.bursard import BURSARD, CHECKOUT, Ledger, environment_with
from tests.cli.terminal import Terminal

COLUMNS = [
    {"name": "age", "type": "integer", "low": 0, "high": 99},
    {"name": "smoker", "type": "boolean"},
    {"name": "grade", "type": "category", "values": ["1", "2", "3"]},
    {"name": "region", "type": "category", "values": ["north", "south"]},
]
# As pandas writes columns with missing values: integers get a fraction.
ROWS = [
    *(["30", "1.0", "1.0", "north"] for _ in range(600)),
    *(["30", "0.0", "3.0", "South"] for _ in range(300)),
    *(["130", "", "4.0", "south"] for _ in range(40)),
    *(["-1", "maybe", "", ""] for _ in range(4)),
]


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    (tmp_path / "data").mkdir()
    made = Ledger(tmp_path / "ledger", tmp_path / "data", "k" * 40)
    for name, value in made.environment().items():
        monkeypatch.setenv(name, value)
    lines = ["age,smoker,grade,region", *(",".join(row) for row in ROWS)]
    (made.data / "people.csv").write_text("\n".join(lines) + "\n")
    return made


def card(ledger: Ledger, **changes: Any) -> str:
    path = ledger.folder.parent / "card.json"
    declared = {"person": {"kind": "row"}, "neighbours": "replace_one", "rows": 900}
    path.write_text(json.dumps(declared | {"columns": COLUMNS} | changes))
    return str(path)


def add(ledger: Ledger, **changes: Any) -> None:
    words = ["dataset", "add", "people.csv", "--card", card(ledger, **changes), "--yes"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    assert "bursard dataset check people" in done.stdout
    assert "PRIVATE" not in done.output


def checked(ledger: Ledger, ends: str = "region: ") -> str:
    terminal = Terminal(ledger, "dataset", "check", "people")
    terminal.wait_for(ends)
    assert terminal.end() == 0
    return terminal.output.replace("\r\n", "\n")


def kept(ledger: Ledger) -> dict[str, bytes]:
    """All files beside the data: the ledger, prepared rows, and any others."""
    places = (path for path in ledger.home.rglob("*") if path.is_file())
    return {
        str(path.relative_to(ledger.home)): path.read_bytes()
        for path in places
        if path.suffix not in (".lock", ".db-shm", ".db-wal")
    }


def test_missing_unlisted_clamped_values_and_a_wrong_number_of_rows_are_shown(
    ledger: Ledger,
) -> None:
    add(ledger)
    shown = checked(ledger)
    assert "PRIVATE" in shown
    assert "stored, logged or sent" in shown
    assert "people, version 1: 944 rows" in shown
    assert "WRONG: the card declares 900 rows, and there are 944." in shown
    table = {words[0]: words[1:] for line in shown.splitlines() if len(words := line.split()) == 5}
    assert table["age"] == ["0", "0", "4", "40"]
    assert table["smoker"] == ["40", "4", "-", "-"]
    assert table["grade"] == ["4", "40", "-", "-"]
    assert table["region"] == ["4", "300", "-", "-"]
    assert "region: 300 values are not among the declared categories" in shown
    assert "none of its values can be used" not in shown


def test_an_unreadable_column_is_pointed_out(ledger: Ledger) -> None:
    wrong = [COLUMNS[0], {"name": "region", "type": "boolean"}]
    add(ledger, columns=wrong, rows=944)
    shown = checked(ledger, "none of its values")
    assert "region: 940 values cannot be read as boolean" in shown
    assert "region: WRONG: none of its values can be used." in shown
    assert "the card declares" not in shown


def test_rows_of_persons_are_counted(ledger: Ledger) -> None:
    lines = ["who,age", *(f"p{i // 3},30" for i in range(30)), ",30", "p0,30"]
    (ledger.data / "people.csv").write_text("\n".join(lines) + "\n")
    person = {"kind": "column", "column": "who", "rows_max": 2}
    add(ledger, person=person, neighbours="add_remove", rows=None, columns=COLUMNS[:1])
    shown = checked(ledger, "above high")
    assert "10 persons, each with at most 4 rows" in shown
    assert "1 rows have no person" in shown
    assert "10 persons have more than rows_max, 2: 11 of their rows are left out" in shown


def test_the_check_stores_nothing(ledger: Ledger) -> None:
    add(ledger)
    before = kept(ledger)
    rows = ledger.rows("SELECT * FROM entries ORDER BY book_id, seq")
    checked(ledger)
    assert kept(ledger) == before
    assert ledger.rows("SELECT * FROM entries ORDER BY book_id, seq") == rows


def test_the_figures_are_shown_on_a_terminal_only(ledger: Ledger) -> None:
    add(ledger)
    done = subprocess.run(
        [*BURSARD, "dataset", "check", "people"],
        cwd=CHECKOUT,
        env=environment_with(ledger.environment()),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "terminal only" in done.stderr


def test_a_changed_source_is_not_counted(ledger: Ledger) -> None:
    add(ledger)
    with (ledger.data / "people.csv").open("a") as file:
        file.write("31,1.0,1.0,north\n")
    terminal = Terminal(ledger, "dataset", "check", "people")
    terminal.wait_for("not what was registered")
    assert terminal.end() == 1
    assert "PRIVATE" not in terminal.output


def test_dataset_add_offers_the_check_at_the_end(ledger: Ledger) -> None:
    terminal = Terminal(ledger, "dataset", "add", "people.csv", "--card", card(ledger))
    terminal.wait_for("Show the private figures")
    assert "944" not in terminal.output
    terminal.say("y")
    terminal.wait_for("the card declares 900 rows, and there are 944")
    assert terminal.end() == 0


def test_ctrl_c_at_the_offer_keeps_the_dataset(ledger: Ledger) -> None:
    terminal = Terminal(ledger, "dataset", "add", "people.csv", "--card", card(ledger))
    terminal.wait_for("Show the private figures")
    terminal.interrupt()
    terminal.wait_for("bursard dataset check people")
    assert terminal.end() == 0
    assert "nothing was registered" not in terminal.output
    assert ledger.rows("SELECT name FROM datasets") == [("people",)]
