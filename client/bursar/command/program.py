"""The program: its commands, its errors and its exit codes."""

import functools
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from bursar import __version__
from bursar.command import accounts, questions
from bursar.command.options import as_options
from bursar.command.printing import note
from bursar.errors import BudgetExhausted, BursarError, NoLogin, NotAuthenticated

WRONG, EXHAUSTED, KEY = 2, 3, 4  # exit codes; 2 is also "the server is away"

cli = typer.Typer(
    name="bursar",
    invoke_without_command=True,
    help="Ask private data. Every question has a price; preview and rehearsal are free.",
    pretty_exceptions_enable=False,
)
COMMANDS: list[Callable[..., None]] = [
    accounts.login,
    accounts.logout,
    accounts.datasets,
    accounts.show,
    accounts.sample,
    questions.price,
    questions.ask,
    questions.sql,
    questions.rehearse,
    questions.plan,
    accounts.history,
    accounts.budget,
    accounts.verify,
]


def _interruptible(command: Callable[..., None]) -> Callable[..., None]:
    """Typer ends a command at Ctrl-C without a word; what became of its charge must be shown."""

    @functools.wraps(command)
    def run_command(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
        except KeyboardInterrupt as error:
            raise Cancelled("cancelled", str(error)) from None

    return run_command


class Cancelled(Exception):
    """Ctrl-C, and what the server says of a question that was being answered."""


for command in COMMANDS:
    cli.command()(_interruptible(command))


@cli.callback()
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Ask private data. Every question has a price; preview and rehearsal are free."""
    if version:
        print(f"bursar {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


def run() -> int:
    """Run one command; its exit code."""
    try:
        code = cli(standalone_mode=False)
    except BursarError as error:
        _complain(error.message, error.hint)
        return code_of(error)
    except Cancelled as cancelled:
        _complain(*cancelled.args)
        return 130
    except typer.Abort:
        _complain("cancelled", "")
        return 130
    except KeyboardInterrupt:
        _complain("cancelled", "")
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except Exception as error:
        shown = getattr(error, "format_message", None)
        if shown is None:
            raise
        _complain(str(shown()), "Type bursar --help.")
        return WRONG
    return code if isinstance(code, int) else 0


def code_of(error: BursarError) -> int:
    if isinstance(error, BudgetExhausted):
        return EXHAUSTED
    return KEY if isinstance(error, (NotAuthenticated, NoLogin)) else WRONG


def _complain(message: str, hint: str) -> None:
    lines = [f"bursar: {as_options(message)}"]
    lines += [f"        {line}" for line in as_options(hint).splitlines()]
    note("\n".join(lines))
