"""Print lists: tables on a terminal, CSV in a pipe, JSON when asked for."""

import csv
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
PrintedRow = Mapping[str, Any]


def print_rows(rows: Sequence[PrintedRow], columns: Sequence[str], *, as_json: bool) -> None:
    """`columns` are shown even if there are no rows."""
    if as_json:
        print(json.dumps(rows, ensure_ascii=False))
    elif sys.stdout.isatty():
        _print_table(rows, columns)
    else:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_cell(row.get(name)) for name in columns] for row in rows)


def note(text: str) -> None:
    """A remark beside the result: on standard error, so that a pipe stays clean."""
    sys.stderr.write(f"{text}\n")


def _print_table(rows: Sequence[PrintedRow], columns: Sequence[str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False)
    for name in columns:
        grid.add_column(name, overflow="fold")
    for row in rows:
        grid.add_row(*(Text(_cell(row.get(name))) for name in columns))
    width, height = shutil.get_terminal_size()
    Console(width=width, height=height, highlight=False).print(grid)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False)
    return str(value)
