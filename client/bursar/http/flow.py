"""The steps of the client, apart from how bytes travel.

A flow is a generator. It yields calls, pauses and progress, and gets the reply of each call. The
same flow serves the synchronous and the asynchronous client; `transport.py` performs the steps.
"""

import json
import secrets
import urllib.parse
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from bursar.errors import (
    EngineUnavailable,
    Problem,
    StillRunning,
    StoreUnavailable,
    TooManyRunning,
    Unreachable,
    problem_of,
)

T = TypeVar("T")
ATTEMPTS_MAX = 5
PAUSE_FIRST_SECONDS = 0.25
PAUSE_MAX_SECONDS = 8.0
# Nothing was charged, or the same key resolves it: trying again is safe and may help.
RETRIED = (EngineUnavailable, StillRunning, StoreUnavailable, TooManyRunning)
GATEWAY_STATUSES = {502, 504}


@dataclass(frozen=True)
class Call:
    """One HTTP request. `free` marks a POST that changes nothing, such as a preview."""

    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    free: bool = False

    @property
    def safe(self) -> bool:
        """True if sending it twice has the effect of sending it once: it can be tried again."""
        return self.method != "POST" or self.free or "idempotency-key" in self.headers


@dataclass(frozen=True)
class Reply:
    """A reply with any status."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        try:
            return json.loads(self.content)
        except ValueError:
            raise Unreachable(
                "The reply is not JSON.",
                hint="Is the address that of a Bursar server? A proxy may have answered instead.",
            ) from None


@dataclass(frozen=True)
class Pause:
    """Wait this long."""

    seconds: float


@dataclass(frozen=True)
class Progress:
    """Progress of a long question, from 0 to 1. None: the share is not known."""

    text: str
    share: float | None


Step: TypeAlias = Call | Pause | Progress
Flow: TypeAlias = Generator[Step, Reply | None, T]


def quoted(name: str) -> str:
    """A name as part of a path."""
    return urllib.parse.quote(name, safe="*:")


def send(call: Call) -> Flow[Reply]:
    """Send a call, and again while that is safe and promising. Raises the problem of the reply."""
    attempt = 0
    while True:
        attempt += 1
        retry_after_seconds: float | None = None
        try:
            reply = yield call
            assert reply is not None
            if reply.status < 400:
                return reply
            error: Problem | Unreachable = _problem(reply)
            retryable = isinstance(error, RETRIED) or reply.status in GATEWAY_STATUSES
            retry_after_seconds = _retry_after(reply)
        except Unreachable as failure:
            error, retryable = failure, failure.retryable
        if not (retryable and call.safe) or attempt == ATTEMPTS_MAX:
            raise error
        wait = _backoff(attempt) if retry_after_seconds is None else retry_after_seconds
        yield Pause(wait)


def _backoff(attempt: int) -> float:
    """Seconds before the next attempt. Half of it is random, so that clients spread out."""
    longest = min(PAUSE_MAX_SECONDS, PAUSE_FIRST_SECONDS * 2.0 ** (attempt - 1))
    return longest * (1 + secrets.randbelow(1001) / 1000) / 2


def _retry_after(reply: Reply) -> float | None:
    try:
        return min(PAUSE_MAX_SECONDS, float(reply.headers["retry-after"]))
    except (KeyError, ValueError):
        return None


def _problem(reply: Reply) -> Problem:
    try:
        members = json.loads(reply.content)
    except ValueError:
        members = None
    if not isinstance(members, dict):
        members = {"status": reply.status}
    return problem_of(reply.status, members)
