"""`bursard dataset add` on a terminal asks for the missing parts of a card."""

from pathlib import Path

from tests.bursard import Ledger
from tests.cli.dataset_commands import CARD, entries, write_csv
from tests.cli.terminal import Terminal
from tests.server import some_rows


def test_on_a_terminal_the_command_asks_for_missing_parts_and_shows_a_bar(
    ledger: Ledger, tmp_path: Path
) -> None:
    path = write_csv(tmp_path / "people.csv", [*some_rows(), ["SECRET"] * 5])
    terminal = Terminal(ledger, "dataset", "add", str(path), "--infer-types", "--to-parquet")
    for words, said in (
        ("One person is", "household"),
        ("one of row, column", ""),
        ("Neighbours", "add_remove"),
        ("age: type", "integer"),
        ("age: lowest", "young"),
        ("a whole number, such as 120", "120"),
        ("age: highest", "0"),
        ("low must be less than high", "integer"),
        ("age: lowest", "0"),
        ("age: highest", "120"),
        ("income: type", "number"),
        ("income: lowest", "0"),
        ("income: highest", "2e5"),
        ("region: type", "category"),
        ("region: values", "north,,south"),
        ("values separated by commas, such", 'north, south, "east", west'),
        ("smoker: type", "boolean"),
        ("seen: type", "date"),
        ("seen: lowest", "1.1.2020"),
        ("a date must be written YYYY-MM-DD", "2020-01-01"),
        ("seen: highest", "2025-12-31"),
        ("Register with this card?", "y"),
    ):
        terminal.wait_for(words)
        if said or words == "one of row, column":
            terminal.say(said)
    terminal.wait_for("100%")
    terminal.wait_for("grant a budget")
    terminal.wait_for("Show the private figures")
    terminal.say("n")
    terminal.wait_for("dataset check people")
    assert terminal.end() == 0
    assert "MB/s" in terminal.output
    assert "SECRET" not in terminal.output
    [entry] = entries(ledger)
    after = entry["body"]["after"]["card"]
    kept = [{k: v for k, v in each.items() if v is not None} for each in after["columns"]]
    assert kept == CARD["columns"]
    assert after["person"] == {"kind": "row"}


def test_the_person_column_is_skipped_and_ctrl_c_ends_the_questions(
    ledger: Ledger,
) -> None:
    (ledger.data / "visits.csv").write_text("who,age\n1,2\n")
    terminal = Terminal(ledger, "dataset", "add", "visits.csv", "--infer-types")
    for words, said in (
        ("One person is", "column"),
        ("Column that identifies", "nobody"),
        ("a column of the source: who, age", "who"),
        ("Most rows kept", "3"),
        ("Neighbours", "replace_one"),
        ("Public number of rows", "1"),
    ):
        terminal.wait_for(words)
        terminal.say(said)
    terminal.wait_for("age: type")
    terminal.interrupt()
    terminal.wait_for("Stopped: nothing was registered.")
    assert terminal.end() == 130
    assert "who: type" not in terminal.output
