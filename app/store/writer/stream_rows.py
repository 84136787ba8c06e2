"""Rows of streams and asks while a batch changes them."""

from dataclasses import dataclass


@dataclass(slots=True)
class StreamInBatch:
    """A stream's row while a batch changes it."""

    id: str
    analyst_id: str
    version: int
    held_until: int
    crossings_left: int | None
    asks_left: int | None
    crossed_at: int | None
    closed_at: int | None

    @property
    def over(self) -> bool:
        """True if the stream gives no more answers, not even to an ask that was claimed before."""
        return self.closed_at is not None or self.crossings_left == 0


@dataclass(slots=True)
class AskInBatch:
    """An ask's row while a batch changes it."""

    request: str
    id: str
    stream_id: str
    body_hash: str
    state: str
    attempt: int
    lease_until: int
    fence: int
    version_id: str
    answer: str | None
    created_at: int
    settled_at: int | None
    question: str
