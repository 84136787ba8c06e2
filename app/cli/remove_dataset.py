"""`bursard dataset remove`: withdraw a dataset's name, as DELETE /v1/datasets/{dataset} does."""

from typing import Annotated

import typer

from app.cli.exits import confirm
from app.cli.opened import current_ledger, operator
from app.settings import Settings

WARNING = """\
If nothing was ever charged or booked for the data of {name}, its name, card and prepared rows are
removed, and the data may be registered again. Otherwise the name is closed, and what was spent
stays. The source itself is not touched."""


def remove(
    name: Annotated[str, typer.Argument(help="Name of the dataset.")],
    reason: Annotated[str | None, typer.Option(help="Stored in the ledger.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask first.")] = False,
) -> None:
    """Withdraw a name: remove it if nothing was ever charged, otherwise close it."""
    from app.actions.datasets.withdraw_dataset import DETAILS

    with current_ledger(Settings.from_environment()) as stores:
        shown = stores.datasets.find(name).name
        typer.echo(WARNING.format(name=shown))
        confirm(f"Withdraw {shown}?", yes=yes)
        outcome = stores.withdraw_dataset(
            operator(),
            name=name,
            reason=reason or "withdrawn by the operator",
            request=None,
            body="",
        )
        typer.echo(f"{shown} is {outcome.value}. {DETAILS[outcome]}")
