"""The commands about logins, datasets, budgets and evidence."""

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from bursar import connect, evidence
from bursar.command.printing import note, print_json, print_table, print_text
from bursar.command.questions import DatasetName, Json
from bursar.command.session import client
from bursar.errors import BadQuestion
from bursar.login import find_login, remove_login, store_login
from bursar.results.listings import Listing, columns_listing
from bursar.results.show.budget import budget_text

WATCH_SECONDS = 2.0


def login(
    url: Annotated[
        str | None, typer.Argument(help="The server's address.", metavar="[URL]")
    ] = None,
    ca: Annotated[
        Path | None,
        typer.Option(help="PEM file of your own authority, for the server's certificate."),
    ] = None,
) -> None:
    """Store an address and a key for later. The key is read from the terminal, or from a pipe."""
    address = url or os.environ.get("BURSAR_URL") or typer.prompt("Address of the server")
    if sys.stdin.isatty():
        key = typer.prompt("Key", hide_input=True)
    else:
        key = sys.stdin.readline().strip()
    found_login = find_login(address, key)
    if ca is not None:
        found_login = replace(found_login, ca=str(ca.absolute()))
    verify = found_login.ca or True
    with connect(found_login.url, found_login.key, verify=verify) as connected:
        names = [row["name"] for row in connected.datasets().rows()]
    path = store_login(found_login)
    note(f"Logged in. You may ask about: {', '.join(names) or 'nothing yet'}.")
    note(f"The key is stored in {path}, readable by you only.")


def logout() -> None:
    """Forget the stored key."""
    note("Logged out." if remove_login() else "There was no stored login.")


def datasets(as_json: Json = False) -> None:
    """List the datasets that you may ask about."""
    print_table(client().datasets(), as_json=as_json)


def show(dataset: DatasetName, as_json: Json = False) -> None:
    """Show the columns of a dataset, and your budget."""
    shown = client()[dataset]
    if as_json:
        print_json(shown.card.members)
        return
    columns = columns_listing(shown.card, all_values=not sys.stdout.isatty())
    print_table(columns, as_json=False, heading=shown.card.description)
    note(shown.card.person)
    if shown.shown_budget is not None:
        note(budget_text(shown.shown_budget))


def sample(
    dataset: DatasetName,
    rows: Annotated[int, typer.Option("-n", "--rows", help="How many.")] = 10,
    as_json: Json = False,
) -> None:
    """Print made-up rows, drawn from the public card."""
    print_table(client()[dataset].sample(rows), as_json=as_json)


def history(
    kind: Annotated[str | None, typer.Option(help="Only questions of this kind.")] = None,
    status: Annotated[str | None, typer.Option(help="Only questions in this state.")] = None,
    since: Annotated[str | None, typer.Option(help="Only questions since this moment.")] = None,
    as_json: Json = False,
) -> None:
    """List the questions that you asked."""
    listed = client().history(kind=kind, status=status, since=since)
    print_table(listed, as_json=as_json)


def budget(
    dataset: Annotated[str | None, typer.Argument(metavar="[DATASET]")] = None,
    watch: Annotated[bool, typer.Option(help="Show it again and again; Ctrl-C ends.")] = False,
    as_json: Json = False,
) -> None:
    """Show what is left of your budgets."""
    while True:
        _show_budgets(dataset, as_json=as_json, again=watch)
        if not watch:
            return
        time.sleep(WATCH_SECONDS)


def _show_budgets(dataset: str | None, *, as_json: bool, again: bool) -> None:
    connected = client()
    shown = connected.budgets(dataset=dataset)
    if dataset is not None and not shown:
        connected[dataset]  # an unknown name is refused here, with the nearest one
    if again and sys.stdout.isatty():
        sys.stdout.write("\033[2J\033[H")  # clear the screen
    if sys.stdout.isatty() and not as_json:
        print_text("\n\n".join(budget_text(one) for one in shown))
    else:
        rows = tuple(
            {
                "dataset": one.dataset,
                "holder": one.holder,
                "currency": one.currency,
                "used": one.used,
                "remaining": one.remaining.epsilon,
                "questions_left": one.questions_left,
                "frozen": one.frozen,
            }
            for one in shown
        )
        print_table(Listing("budgets", rows), as_json=as_json)
        sys.stdout.flush()


def verify(
    export: Annotated[Path, typer.Argument(help="An export of the ledger.", metavar="EXPORT")],
    answer: Annotated[
        Path | None, typer.Option(help="An answer as JSON, whose receipt is looked up.")
    ] = None,
) -> None:
    """Check an export, and a receipt against it, without any server."""
    checked = evidence.check_export(export)
    problems = list(checked.findings)
    if answer is not None:
        try:
            members = json.loads(answer.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            raise BadQuestion(f"{answer} is not a JSON file.") from None
        found = [evidence.check_receipt(one, checked) for one in evidence.answers_in(members)]
        problems += [problem for problem in found if problem is not None]
    for problem in problems:
        note(f"bursar: {problem}")
    if problems:
        raise typer.Exit(1)
    note(f"sound: {checked.entries:,} entries in {checked.books} books, no gap, no change")
    if answer is not None:
        note("the receipt is in the export")
