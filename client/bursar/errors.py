"""Errors of the client. A problem of the server becomes the class of the same name.

`BudgetExhausted` is the problem `/problems/budget-exhausted`. An error prints as one or two lines,
in a notebook too: what is wrong, and what to do.
"""

import re
from collections.abc import Mapping
from decimal import ROUND_DOWN, Context, Decimal, localcontext
from typing import Any


class BursarError(Exception):
    """Everything that this package raises on purpose. `str(error)` is for people."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message

    def _render_traceback_(self) -> list[str]:
        """Show one or two lines in a notebook, without a traceback."""
        return [f"{type(self).__name__}: {line}" if not i else line for i, line in self._lines()]

    def _lines(self) -> list[tuple[int, str]]:
        return list(enumerate(str(self).splitlines()))


# Errors that the client finds by itself


class Unreachable(BursarError):
    """The server did not answer."""

    retryable = True  # trying again may help


class TlsFailed(Unreachable):
    """The server's certificate was not accepted."""

    retryable = False


class NoLogin(BursarError):
    """There is no address or key to connect with."""


class RolledBack(BursarError):
    """The server's ledger lacks a charge that this client has already seen."""


class BadQuestion(BursarError):
    """The question cannot be built: a wrong name, type or combination."""


class NoSuchName(BadQuestion, AttributeError):
    """There is no such method or mechanism."""


class MissingPackage(BursarError):
    """An optional package is not installed."""


# Problems of the server


class Problem(BursarError):
    """A problem response (RFC 9457). `members` holds everything that the server sent."""

    def __init__(self, status: int, members: Mapping[str, Any], *, hint: str = "") -> None:
        self.status = status
        self.members = dict(members)
        super().__init__(_message(self.members), hint=hint or _hint(self.members))

    @property
    def type(self) -> str:
        return str(self.members.get("type", "about:blank"))


class NotAuthenticated(Problem):
    """The key is wrong, expired or revoked."""


class NotPermitted(Problem):
    """The role of this key may not do that."""


class NoGrant(Problem):
    """There is no such dataset, or no budget on it for you."""


class NotFound(Problem):
    """There is no such thing."""


class Invalid(Problem):
    """The request breaks a rule. `fields` has the place and the rule of each."""

    @property
    def fields(self) -> list[tuple[str, str]]:
        errors = self.members.get("errors") or []
        return [(str(error["pointer"]), str(error["rule"])) for error in errors]


class Malformed(Problem):
    """The body is not JSON."""


class TooLarge(Problem):
    """The body is too large."""


class Conflict(Problem):
    """The request contradicts the present state."""


class DatasetClosed(Problem):
    """The dataset takes no questions any more."""


class PreconditionFailed(Problem):
    """The budget has changed since it was read."""


class IdempotencyConflict(Problem):
    """The same key was used with another body."""


class StillRunning(Problem):
    """The question with this key is being answered."""


class StreamEnded(Problem):
    """The stream answers nothing more."""


class TooManyRunning(Problem):
    """Too many questions run at once."""


class BudgetExhausted(Problem):
    """The question costs more than an account has left. Nothing was charged."""

    @property
    def account(self) -> str:
        return str(self.members.get("account", ""))

    @property
    def remaining(self) -> Mapping[str, Any]:
        return self.members.get("remaining") or {}

    @property
    def largest_epsilon(self) -> float | None:
        """The most that could be asked for now."""
        value = self.members.get("largest_epsilon")
        return None if value is None else float(value)


class AccountFrozen(Problem):
    """The account is frozen."""


class EngineUnavailable(Problem):
    """The data cannot be reached now. Nothing was charged."""


class SourceChanged(Problem):
    """The data have changed since they were registered."""


class EngineFailed(Problem):
    """The data could not be read. The charge stays."""


class QuestionForfeited(Problem):
    """The question was charged and has no answer."""


class QuestionVoided(Problem):
    """The question was cancelled before any data were read. Nothing was charged."""


class LedgerBehind(Problem):
    """The server's ledger is older than its anchors, and charges nothing."""


class SecretUnavailable(Problem):
    """The secret of a stream cannot be read."""


class StoreUnavailable(Problem):
    """The ledger cannot be reached."""


class MethodNotAllowed(Problem):
    """The address takes another method."""


class InternalError(Problem):
    """The server failed."""


def _slug(kind: type[Problem]) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower()


PROBLEMS: dict[str, type[Problem]] = {_slug(kind): kind for kind in Problem.__subclasses__()}


def problem_of(status: int, members: Mapping[str, Any]) -> Problem:
    """The error of a problem response. A type that this client does not know is a `Problem`."""
    return PROBLEMS.get(_slug_of(members), Problem)(status, members)


def _slug_of(members: Mapping[str, Any]) -> str:
    return str(members.get("type", "")).rpartition("/")[2]


def _message(members: Mapping[str, Any]) -> str:
    errors = members.get("errors")
    if errors:
        return "; ".join(_field(str(error["pointer"]), str(error["rule"])) for error in errors)
    if _slug_of(members) == "not-authenticated":
        return "The key was not accepted: it is wrong, expired or revoked."
    detail = members.get("detail") or members.get("title")
    return str(detail or f"The server answered with status {members.get('status')}.")


def _field(pointer: str, rule: str) -> str:
    names = [name for name in pointer.split("/") if name]
    return f"{'.'.join(names)}: {rule}" if names else rule


def _hint(members: Mapping[str, Any]) -> str:
    slug = _slug_of(members)
    largest = members.get("largest_epsilon")
    if slug == "budget-exhausted" and largest is not None:
        return f"The most you can ask for now: epsilon={_rounded_down(largest)}"
    return HINTS.get(slug, "")


def _rounded_down(amount: float) -> str:
    """Six digits of an amount, and never more than it: what is shown can be asked."""
    with localcontext(Context(prec=6, rounding=ROUND_DOWN)):
        shown = f"{(+Decimal(str(amount))).normalize():f}"
    return shown


HINTS = {
    "not-authenticated": "Ask an administrator for a new key, then log in again: bursar login",
    "no-grant": "Ask an administrator for a budget, or look at the datasets you may use.",
    "account-frozen": "Ask an administrator to raise the limit.",
    "question-forfeited": "The charge stays. Ask again with fresh=True to pay for a new answer.",
    "ledger-behind": "An administrator must run: bursard reconcile",
}
