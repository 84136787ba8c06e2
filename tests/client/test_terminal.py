"""A terminal shows names and values as they are, in columns whose words stay whole."""

import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from bursar.command.printing import blocks, printable
from tests.docs.blocks import on_a_terminal
from tests.server import World, made

HOSTILE = ["[bold]", "[/b]", ":smile:", "[red]x[/red]"]
PROGRAM = f"{shlex.quote(sys.executable)} -c 'from bursar.command import main; main()'"


@pytest.fixture(scope="module")
def hostile(live: World) -> str:
    """A dataset whose description, column and categories look like markup."""
    rows = [[HOSTILE[n % 4], n % 50] for n in range(80)]
    path = live.write_csv(rows, ["[bold] :smile:", "age"])
    columns = [
        {"name": "[bold] :smile:", "type": "category", "values": HOSTILE},
        {"name": "age", "type": "integer", "low": 0, "high": 50, "description": "in [b] years"},
    ]
    name = live.dataset(path, columns=columns, description="[bold]all[/bold] :smile: [/b]")
    for holder in ("*", "ada"):
        live.grant(name, holder, 5)
    return name


def printed(world: World, words: str, folder: Path) -> str:
    environment = {
        **os.environ,
        "HOME": str(folder),
        "BURSAR_URL": world.server.url,
        "BURSAR_KEY": world.people["ada"].key,
    }
    return on_a_terminal(f"{PROGRAM} {words}", folder, environment)


def test_names_and_values_are_no_markup(live: World, hostile: str, tmp_path: Path) -> None:
    shown = printed(live, f"show {hostile}", tmp_path)
    assert "[bold]all[/bold] :smile: [/b]" in shown
    assert "[bold], [/b], :smile:, [red]x[/red]" in shown
    assert "in [b] years" in shown
    asked = printed(live, f"ask {hostile} count --by '[bold] :smile:' -e 1", tmp_path)
    assert re.search(r"^\[bold\] :smile: +value +low +high *$", asked, re.MULTILINE)
    for value in HOSTILE:
        assert re.search(rf"^{re.escape(value)} +\d+", asked, re.MULTILINE), value
    filtered = printed(live, f"price {hostile} count -w 'age>=3' -e 1", tmp_path)
    assert "costs ε 1" in filtered


def test_control_characters_are_shown_and_not_obeyed() -> None:
    assert printable("a\x1b[31mb\x07\n") == "a\\x1b[31mb\\x07\n"


def test_wide_tables_are_printed_in_blocks() -> None:
    shown = {name: [name * 5] for name in ("first", "second", "third", "fourth")}
    assert blocks(shown, 200) == [["first", "second", "third", "fourth"]]
    assert blocks(shown, 60) == [["first", "second"], ["first", "third"], ["first", "fourth"]]
    assert blocks({}, 80) == [[]]
    words = {"name": ["x"], "text": ["many short words that may be wrapped " * 10]}
    assert blocks(words, 30) == [["name", "text"]]


def test_no_word_of_a_wide_table_is_broken(live: World, tmp_path: Path) -> None:
    dataset = live.dataset()
    for holder in ("*", "ada"):
        live.grant(dataset, holder, 5)
    made(live.client("ada").get(f"/v1/datasets/{dataset}"))
    printed(live, f"ask {dataset} count -e 1", tmp_path)
    shown = printed(live, "history", tmp_path)
    ids = re.findall(r"\bq_[0-9a-f]{32}\b", shown)
    assert ids
    assert re.search(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", shown)


def test_an_operators_list_is_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    from app.cli.printing import _print_table

    _print_table([{"name": "[bold]", "text": ":smile: [/b]"}], ["name", "text"])
    assert "[bold]" in (out := capsys.readouterr().out)
    assert ":smile: [/b]" in out
