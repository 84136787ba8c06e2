"""`bursard dataset remove`: withdraw a dataset's name, as DELETE /v1/datasets/{dataset} does."""

from typing import Annotated

import typer

from app.cli.dataset import OPERATOR
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
    from app.access import Principal, Role
    from app.actions.datasets.withdraw_dataset import DETAILS
    from app.main import Stores

    settings = Settings.from_environment()
    stores = Stores(settings)
    stores.get_current(settings)
    try:
        shown = stores.datasets.find(name).name
        typer.echo(WARNING.format(name=shown))
        if not yes and not typer.confirm(f"Withdraw {shown}?"):
            typer.echo("Nothing was changed.", err=True)
            raise typer.Exit(1)
        outcome = stores.withdraw_dataset(
            Principal("", OPERATOR, Role.ADMIN, ""),
            name=name,
            reason=reason or "withdrawn by the operator",
            request=None,
            body="",
        )
        typer.echo(f"{shown} is {outcome.value}. {DETAILS[outcome]}")
    finally:
        stores.engines.close()
        stores.database.engine.dispose()
