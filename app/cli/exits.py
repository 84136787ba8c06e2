"""Exit codes, and errors in one or two lines: every error that an operator can fix."""

import sys
from collections.abc import Callable, Iterable
from typing import Any

import typer
from sqlalchemy.exc import DBAPIError

from app.errors import AccessError, AppError, Conflict, Invalid, NotFound
from app.settings import SettingsError

WRONG = 1  # something is wrong with the ledger, or a check failed
INPUT = 2  # wrong input or setting
INTERRUPTED = 130  # Ctrl-C
FIELDS_SHOWN = 5
UNREACHABLE = "The ledger's database cannot be reached."
CHECK_URL = "Check BURSAR_DATABASE_URL and BURSAR_HOME; `bursard doctor` shows more."


class Failure(Exception):
    """An error with its exit code, and what to do about it."""

    def __init__(self, message: str, hint: str = "", code: int = INPUT) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code


def run(program: Callable[..., Any]) -> int:
    """Run one command; its exit code."""
    try:
        code = program(standalone_mode=False)
    except typer.Abort:  # at a question
        code = INTERRUPTED
    except Exception as error:
        failure = failure_of(error)
        if failure is None:
            raise
        complain(failure.message, *failure.hint.splitlines())
        return failure.code
    if code == INTERRUPTED:  # typer turns Ctrl-C into this code
        complain("cancelled")
    return code if isinstance(code, int) else 0


def failure_of(error: Exception) -> Failure | None:
    """The error as an operator reads it; None if it is a fault of this program."""
    match error:
        case Failure():
            return error
        case SettingsError():
            return Failure(str(error))
        case Invalid():
            return Failure(error.detail, "\n".join(rules_of(error)))
        case NotFound() | Conflict() | AccessError():
            return Failure(error.detail)
        case AppError():
            return Failure(error.detail, code=WRONG)
        case DBAPIError():
            return Failure(UNREACHABLE, CHECK_URL, WRONG)
        case OSError():
            where = f"{error.filename}: " if error.filename else ""
            return Failure(f"{where}{error.strerror or 'cannot be used'}.")
    shown = getattr(error, "format_message", None)  # wrong options and arguments
    return None if shown is None else Failure(str(shown()), "Type bursard --help.")


def rules_of(error: Invalid) -> Iterable[str]:
    """Broken rules beyond the one that the error's own sentence states."""
    rules = [f"{each.pointer or 'the body'}: {each.rule}" for each in error.fields]
    more = [rule for rule in dict.fromkeys(rules) if rule != error.detail]
    if len(more) > FIELDS_SHOWN:
        return [*more[:FIELDS_SHOWN], f"and {len(more) - FIELDS_SHOWN} more"]
    return more


def confirm(question: str, *, yes: bool) -> None:
    """Ask the operator at the terminal; raises Failure unless the answer is yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Failure("Nothing was changed: there is no terminal to ask on.", "Use --yes.")
    if not typer.confirm(question):
        raise Failure("Nothing was changed.", code=WRONG)


def complain(message: str, *more: str) -> None:
    lines = [f"bursard: {message}", *(f"         {line}" for line in more)]
    sys.stderr.write("\n".join(lines) + "\n")
