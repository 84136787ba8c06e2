"""Print results: tables on a terminal, CSV in a pipe, JSON when asked for.

Names and values come from data and servers. They are printed as they are: nothing in them is
markup, and control characters are shown instead of obeyed.
"""

import json
import shutil
import sys
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from bursar.results.show.html import cell
from bursar.results.tables import Row, Table, columns_of

ROWS_MAX = 200  # on a terminal
GAP = 2  # columns of a terminal between two columns of a table


def print_table(table: Table, *, as_json: bool, heading: str = "") -> None:
    if as_json:
        print_json(table.rows())
    elif sys.stdout.isatty():
        _print_rich(table.rows(), heading)
    else:
        sys.stdout.write(table.to_csv())


def _print_rich(rows: list[Row], heading: str) -> None:
    width = shutil.get_terminal_size().columns
    console = Console(width=width, highlight=False, markup=False, emoji=False)
    if heading:  # not as the title, which would be as narrow as the table
        console.print(Text(printable(heading)))
    names = columns_of(rows)
    shown = {name: [cell(row.get(name)) for row in rows[:ROWS_MAX]] for name in names}
    texts = {n for n in names if any(isinstance(row.get(n), (str, bool)) for row in rows)}
    for number, block in enumerate(blocks(shown, width)):
        if number:
            console.print()
        console.print(_grid({name: shown[name] for name in block}, texts, width))
    if len(rows) > ROWS_MAX:
        note(f"and {len(rows) - ROWS_MAX:,} more rows: use --json, or a pipe")


def _grid(shown: dict[str, list[str]], texts: set[str], width: int) -> RichTable:
    grid = RichTable(box=None, pad_edge=False)
    widths = _narrowed({name: _widths(name, cells) for name, cells in shown.items()}, width)
    for name in shown:
        side = "left" if name in texts else "right"
        header = Text(printable(name))
        grid.add_column(header, justify=side, overflow="fold", width=widths[name])  # type: ignore[arg-type]  # "left" or "right"
    for cells in zip(*shown.values(), strict=True):
        grid.add_row(*(Text(printable(text)) for text in cells))
    return grid


def blocks(shown: dict[str, list[str]], width: int) -> list[list[str]]:
    """The columns in blocks that fit a terminal without breaking a word.

    Each block after the first begins with the first column, which says whose row it is.
    """
    first = next(iter(shown), None)
    lines: list[list[str]] = [[]]
    used = 0
    for name, cells in shown.items():
        least = _widths(name, cells)[0] + GAP
        if lines[-1] and used + least - GAP > width:
            lines.append([str(first)])
            used = _widths(str(first), shown[str(first)])[0] + GAP
        lines[-1].append(name)
        used += least
    return lines


def _widths(name: str, cells: list[str]) -> tuple[int, int]:
    """The longest word of a column, and the longest line."""
    lines = [Text(printable(text)) for text in (name, *cells)]
    words = (Text(word).cell_len for line in lines for word in line.plain.split())
    return max(words, default=1), max(line.cell_len for line in lines)


def _narrowed(widths: dict[str, tuple[int, int]], width: int) -> dict[str, int]:
    """A width for each column: the widest lose first, and none below its longest word."""
    chosen = {name: longest for name, (_, longest) in widths.items()}
    while sum(chosen.values()) + GAP * (len(chosen) - 1) > width:
        wide = [name for name, (least, _) in widths.items() if chosen[name] > least]
        if not wide:
            break  # one column with a word that is longer than a line: it is folded
        chosen[max(wide, key=lambda name: chosen[name])] -= 1
    return chosen


def printable(text: str) -> str:
    """A text without control characters: an escape sequence could change what a terminal shows."""
    return "".join(one if one.isprintable() or one == "\n" else repr(one)[1:-1] for one in text)


def note(text: str) -> None:
    """Something beside the result: on standard error, so that a pipe stays clean."""
    if text:
        sys.stderr.write(f"{printable(text)}\n")


def print_text(text: str) -> None:
    """A result that is text already."""
    print(printable(text) if sys.stdout.isatty() else text)


def print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=None, default=str))
