"""Print results: tables on a terminal, CSV in a pipe, JSON when asked for."""

import json
import shutil
import sys
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable

from bursar.results.show.html import cell
from bursar.results.tables import Row, Table, columns_of

ROWS_MAX = 200  # on a terminal


def print_table(table: Table, *, as_json: bool, heading: str = "") -> None:
    rows = table.rows()
    if as_json:
        print(json.dumps(rows, ensure_ascii=False, default=str))
    elif sys.stdout.isatty():
        _print_rich(rows, heading)
    else:
        sys.stdout.write(table.to_csv())


def _print_rich(rows: list[Row], heading: str) -> None:
    grid = RichTable(box=None, pad_edge=False)
    names = columns_of(rows)
    for name in names:
        texts = any(isinstance(row.get(name), (str, bool)) for row in rows)
        grid.add_column(name, justify="left" if texts else "right", overflow="fold")
    for row in rows[:ROWS_MAX]:
        grid.add_row(*(cell(row.get(name)) for name in names))
    console = Console(width=shutil.get_terminal_size().columns, highlight=False)
    if heading:  # not as the title, which would be as narrow as the table
        console.print(heading)
    console.print(grid)
    if len(rows) > ROWS_MAX:
        note(f"and {len(rows) - ROWS_MAX:,} more rows: use --json, or a pipe")


def note(text: str) -> None:
    """Something beside the result: on standard error, so that a pipe stays clean."""
    if text:
        sys.stderr.write(f"{text}\n")


def print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=None, default=str))
