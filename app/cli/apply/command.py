"""`bursard apply`: bring people, datasets and budgets to the state that a file describes.

It shows the difference, asks, and acts as the HTTP interface does: every change is an entry of the
ledger, with the operator as its actor. It never deletes, and issues no keys.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.exits import Failure, confirm
from app.cli.opened import current_ledger
from app.cli.printing import JsonOption, note, print_rows
from app.errors import AppError
from app.settings import Settings

if TYPE_CHECKING:
    from app.cli.apply.changes import PlannedChange
    from app.cli.apply.lines import SourceLines
    from app.cli.apply.models import ApplyFile
    from app.main.stores import Stores

COLUMNS = ("action", "what", "field", "before", "after")
KEYS = "Keys are not issued here: `bursard keys issue NAME` shows one once."


def apply(
    path: Annotated[Path, typer.Argument(metavar="FILE.yaml", help="People, datasets, budgets.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask first.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would change.")
    ] = False,
    allow_lower: Annotated[
        bool,
        typer.Option("--allow-lower", help="May lower limits, disable persons, close datasets."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Create or change people, datasets and budgets as a file says. Issues no keys."""
    from app.cli.apply.lines import read_lines

    read = read_lines(path)
    with current_ledger(Settings.from_environment()) as stores:
        changes = list(_planned(stores, _validated(stores, read), read))
        print_rows([row for change in changes for row in change.rows()], COLUMNS, as_json=as_json)
        _refuse_to_take(changes, read, allow_lower=allow_lower)
        if dry_run or not changes:
            note("Nothing was changed." if changes else "There is nothing to change.")
            return
        number = f"{len(changes)} change{'s' if len(changes) > 1 else ''}"
        confirm(f"Make {'these' if len(changes) > 1 else 'this'} {number}?", yes=yes)
        _make(changes, read)
        note(f"{number} made.")
        if any(
            change.action == "create" and change.what.startswith("person ") for change in changes
        ):
            note(KEYS)


def _validated(stores: "Stores", read: "SourceLines") -> "ApplyFile":
    """The file's content, with the public tables of cards read."""
    from pydantic import ValidationError

    from app.actions.datasets.public_tables import with_tables
    from app.api.http.json_body import StrictAdapter
    from app.api.http.validation_errors import invalid
    from app.cli.apply.models import ApplyFile, empty_sections

    adapter: StrictAdapter[ApplyFile] = StrictAdapter(ApplyFile)
    data = empty_sections(read.data)
    datasets = data.get("datasets") if isinstance(data, dict) else None
    items = datasets if isinstance(datasets, list) else []
    for index, item in enumerate(items):
        with read.at(f"/datasets/{index}"):
            items[index] = with_tables(item, stores.tables, stores.datasets.private_files)
    with read.at(""):
        try:
            return adapter.validate_python(data)
        except ValidationError as error:
            errors = error.errors(include_input=False, include_url=False)
            raise invalid(errors, data, adapter.described) from None


def _planned(stores: "Stores", file: "ApplyFile", read: "SourceLines") -> "Iterator[PlannedChange]":
    from app.cli.apply.budgets import planned_budgets
    from app.cli.apply.changes import planned_datasets, planned_people
    from app.names import folded

    people, datasets = {}, {}
    for name, role, groups, person_change in planned_people(stores, file, read):
        people[folded(name)] = role, groups
        if person_change is not None:
            yield person_change
    for name, dataset, dataset_change in planned_datasets(stores, file, read):
        datasets[folded(name)] = dataset
        if dataset_change is not None:
            yield dataset_change
    yield from planned_budgets(stores, file, read, datasets, people)


def _refuse_to_take(
    changes: "list[PlannedChange]", read: "SourceLines", *, allow_lower: bool
) -> None:
    for change in changes:
        if change.takes and not (allow_lower or change.allowed):
            rule = f"{change.what} would lose {', '.join(change.takes)}"
            hint = "Allow it with --allow-lower, or with `allow_lower: true` there."
            raise Failure(read.wrong(change.pointer, rule).message, hint)


def _make(changes: "list[PlannedChange]", read: "SourceLines") -> None:
    for index, change in enumerate(changes):
        try:
            with read.at(change.pointer):
                change.make()
        except (Failure, AppError, KeyboardInterrupt):
            note(f"{index} of {len(changes)} changes were made. Apply the file again for the rest.")
            raise
