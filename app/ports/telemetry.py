"""Ports to telemetry: counts and spans that the core reports, and figures that a scrape reads.

The core reports in plain integers and names, and only at public times: at the end of a slot, not at
the end of the private work. So nothing that leaves the service through telemetry is finer than the
time grid.
"""

from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

from app.ledger.account import Account

PastSpan = tuple[str, float, float]  # name, begin and end, on the event loop's clock


class Observer(Protocol):
    """Counts and spans of one worker. Used from its event loop."""

    def count(self, name: str, label: str = "", number: int = 1) -> None:
        """Add to a count; `label` is one of a fixed set of words."""
        ...

    def batch(self, orders: int) -> None:
        """Count a batch of the writer."""
        ...

    def span(self, name: str) -> AbstractContextManager[object]:
        """A span for public work that begins and ends with the context."""
        ...

    def past_spans(self, *spans: PastSpan) -> None:
        """Spans that are over, at public times."""
        ...


class Unobserved:
    """Nobody observes."""

    def count(self, name: str, label: str = "", number: int = 1) -> None:
        pass

    def batch(self, orders: int) -> None:
        pass

    def span(self, name: str) -> AbstractContextManager[object]:
        return nullcontext()

    def past_spans(self, *spans: PastSpan) -> None:
        pass


UNOBSERVED = Unobserved()


@dataclass(slots=True)
class RequestNotes:
    """Facts about the request that is being handled, for its log line and its count."""

    id: str
    analyst_id: str | None = None
    problem: str | None = None  # type of the problem that is sent


# Set where requests arrive. Work that a request starts inherits its notes.
REQUEST: ContextVar[RequestNotes | None] = ContextVar("request", default=None)


def note_analyst(analyst_id: str) -> None:
    """Note who has sent the request: the identifier that the ledger made, not the name."""
    notes = REQUEST.get()
    if notes is not None:
        notes.analyst_id = analyst_id


def note_problem(kind: str) -> None:
    notes = REQUEST.get()
    if notes is not None:
        notes.problem = kind


@dataclass(frozen=True, slots=True)
class LedgerFigures:
    """The ledger at one moment, for a scrape."""

    stopped: bool  # charging is stopped
    entries: int  # in all books
    newest_at: int  # time of the newest entry, in microseconds
    budgets: int  # all, also those that are left out below
    accounts: tuple[tuple[str, Account], ...]  # with the name of their dataset


class FiguresOfLedger(Protocol):
    def read(self, accounts_max: int) -> LedgerFigures:
        """Read in one short transaction. Blocking. Raises StoreUnavailable.

        Accounts of everybody come first, then the others in a fixed order.
        """
        ...


class Metrics(Protocol):
    """The text that a scrape gets."""

    @property
    def media_type(self) -> str: ...

    def beat(self) -> None:
        """Put the present state of this worker where the scrape reads it; on the event loop."""
        ...

    def text(self) -> bytes:
        """Blocking."""
        ...
