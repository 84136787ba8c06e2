"""`bursard dataset check`: how the rows fit the card, shown to their owner at the terminal.

The figures are exact, so they go nowhere else: not into the ledger, a log, a file or a reply.
"""

import shlex
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.settings import Settings

if TYPE_CHECKING:
    from app.data.card import Dataset
    from app.engines.card_check import ColumnFigures, Figures

PRIVATE = (
    "These figures are exact and PRIVATE: they are for the owner of the data alone.\n"
    "They are not stored, logged or sent. Do not pass them on."
)
NO_TERMINAL = "The figures of a check are private: they are shown on a terminal only."
HEADINGS = ("column", "missing", "unreadable", "below low", "above high")
NO_TERMINAL_CODE = 2


def check(name: Annotated[str, typer.Argument(help="Name of the dataset.")]) -> None:
    """Show the owner the number of rows, and how many values are missing, unreadable or clamped.
    The figures are private and are shown on a terminal only."""
    if not sys.stdout.isatty():
        typer.echo(NO_TERMINAL, err=True)
        raise typer.Exit(NO_TERMINAL_CODE)
    show(Settings.from_environment(), name)


def offer(settings: Settings, dataset: "Dataset", *, ask: bool) -> None:
    """Offer the check after a registration, if somebody is at a terminal."""
    question = "Show the private figures of missing and clamped values now?"
    try:
        at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
        if ask and at_terminal and typer.confirm(question, default=True):
            show(settings, dataset.name)
            return
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("")
    typer.echo(f"`bursard dataset check {shlex.quote(dataset.name)}` shows how values were read.")


def show(settings: Settings, name: str) -> None:
    from app.main.stores import Stores  # imports every package, which takes a second

    stores = Stores(settings)
    stores.get_current(settings)
    try:
        dataset = stores.datasets.find(name)
        engine: Any = stores.engines.engine(dataset.source.engine)
        figures: Figures = engine.figures(dataset)
    finally:
        stores.engines.close()
        stores.database.engine.dispose()
    typer.echo(PRIVATE)
    for line in lines(dataset, figures):
        typer.echo(line)


def lines(dataset: "Dataset", figures: "Figures") -> Iterator[str]:
    yield ""
    yield f"{dataset.name}, version {dataset.version.number}: {figures.rows} rows"
    declared = dataset.card.rows
    if declared is not None and declared != figures.rows:
        yield (
            f"  WRONG: the card declares {declared} rows, and there are {figures.rows}. "
            "Answers rely on the declared number."
        )
    yield from _persons(dataset, figures)
    yield ""
    table = [HEADINGS, *map(_cells, figures.columns)]
    widths = [max(len(row[index]) for row in table) for index in range(len(HEADINGS))]
    for first, *others in table:
        numbers = (text.rjust(width) for text, width in zip(others, widths[1:], strict=True))
        yield f"  {first.ljust(widths[0])}  {'  '.join(numbers)}"
    for column in figures.columns:
        yield from _remarks(column, figures.rows)


def _persons(dataset: "Dataset", figures: "Figures") -> Iterator[str]:
    persons, most = figures.persons, dataset.card.person.rows_max
    if persons is None:
        return
    yield f"  {persons.persons} persons, each with at most {persons.rows_most} rows"
    if persons.nameless:
        yield f"  {persons.nameless} rows have no person, and are left out"
    if persons.beyond:
        yield (
            f"  {persons.beyond} persons have more than rows_max, {most}: "
            f"{persons.rows_left_out} of their rows are left out"
        )


def _cells(column: "ColumnFigures") -> tuple[str, ...]:
    bounded = column.type in ("integer", "number", "date")
    clamped = (str(column.below), str(column.above)) if bounded else ("-", "-")
    return column.name, str(column.missing), str(column.unreadable), *clamped


def _remarks(column: "ColumnFigures", rows: int) -> Iterator[str]:
    if not column.unreadable:
        return
    wrong = {
        "category": "are not among the declared categories",
        "text": "are longer than length_max",
    }.get(column.type, f"cannot be read as {column.type}")
    yield f"  {column.name}: {column.unreadable} values {wrong}, and count as missing"
    if column.missing + column.unreadable == rows:
        yield f"  {column.name}: WRONG: none of its values can be used. Check their format."
