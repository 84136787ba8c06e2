"""The operator's program `bursard`: its commands, each in a file of its own."""

from collections.abc import Callable

import typer

from app.cli import ledger_commands, serving
from app.cli.apply import command as apply_command
from app.cli.backup import commands as backup_commands
from app.cli.check_dataset import check
from app.cli.dataset import dataset_cli
from app.cli.doctor import command as doctor_command
from app.cli.exits import run
from app.cli.keys import keys_cli
from app.cli.remove_dataset import remove

cli = typer.Typer(
    name="bursard",
    help="Serve private data within budgets, and look after the ledger.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
COMMANDS: list[Callable[..., None]] = [
    serving.serve,
    serving.demo,
    doctor_command.doctor,
    apply_command.apply,
    backup_commands.backup,
    backup_commands.restore,
    ledger_commands.migrate,
    ledger_commands.verify,
    ledger_commands.reconcile,
    ledger_commands.export,
    ledger_commands.calibrate,
]
for command in COMMANDS:
    cli.command()(command)
dataset_cli.command("check")(check)
dataset_cli.command()(remove)
cli.add_typer(dataset_cli, name="dataset")
cli.add_typer(keys_cli, name="keys")


def main() -> None:
    """Run a command. Errors are one or two lines, and the exit code names their sort."""
    raise SystemExit(run(cli))


if __name__ == "__main__":
    main()
