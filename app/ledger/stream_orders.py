"""What is handed to the ledger's writer about streams, and what it hands back.

A stream is opened by a charge; its row is stored with the answer of that charge. One ask at a time
holds it, under a lease: CLAIM uses up one ask and raises the stream's version, and what the ask
then stores is fenced by its own attempt and by that version. So asks of one stream are ordered,
none counts a crossing twice, and no crossing is told that is not stored.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from app.errors import AppError
from app.ledger.leaving import AT_ONCE, Leaving

Nodes = Mapping[tuple[int, int], int]  # by first and last epoch: their noisy count


def stream_of(charge_id: str) -> str:
    """One charge, one stream."""
    return f"s{charge_id[1:]}"


@dataclass(frozen=True, slots=True)
class NewStream:
    """What is stored of a stream with the answer of its opening."""

    analyst_id: str
    charge_id: str
    dataset_id: str
    kind: str
    parameters: str  # JSON: the public parameters of its noise
    secret: str | None  # sealed
    crossings: int | None
    asks_max: int | None

    @property
    def id(self) -> str:
        return stream_of(self.charge_id)


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream as it is stored, with what its opening says of it."""

    id: str
    analyst_id: str
    analyst: str
    charge_id: str
    dataset: str
    kind: str
    parameters: str
    secret: str | None
    crossings_left: int | None
    asks_left: int | None
    created_at: int
    closed_at: int | None
    opening: str  # canonical text of the opening's body
    charged: str
    digest: str | None  # of the source that it was opened about

    @property
    def ended(self) -> bool:
        return self.crossings_left == 0 or self.asks_left == 0


@dataclass(frozen=True, slots=True)
class ClaimOrder:
    """Use up one ask of a stream and hold it, or find what this request key was told."""

    ask_id: str
    stream_id: str
    analyst_id: str
    request_key: str
    body_hash: str
    question: str  # canonical text of the ask
    version_id: str
    refusal: AppError | None  # why nothing new may be asked; what is stored is told all the same
    catalogue: int
    lease_seconds: float

    @property
    def request(self) -> str:
        return f"{self.stream_id}/{self.request_key}"


@dataclass(frozen=True, slots=True)
class AnswerAskOrder:
    """Store the answer and what it changes of its stream, if nothing else has changed that."""

    ask_id: str
    stream_id: str
    attempt: int
    fence: int
    answer: str
    crossed: bool
    nodes: Nodes  # drawn for this answer
    leaving: Leaving = AT_ONCE


@dataclass(frozen=True, slots=True)
class ForfeitAskOrder:
    """The engine was asked and failed: the ask is used up, and there will be no answer."""

    ask_id: str
    stream_id: str
    attempt: int
    fence: int
    leaving: Leaving = AT_ONCE


@dataclass(frozen=True, slots=True)
class CloseOrder:
    """Nothing more is asked of the stream; nothing is given back."""

    stream_id: str
    analyst_id: str


StreamOrder = ClaimOrder | AnswerAskOrder | ForfeitAskOrder | CloseOrder


@dataclass(frozen=True, slots=True)
class Claimed:
    """The ask is used up, durably, and this caller holds the stream: the engine may be asked."""

    ask_id: str
    attempt: int
    fence: int
    version_id: str
    crossings_left: int | None
    asks_left: int | None
    nodes: Nodes


@dataclass(frozen=True, slots=True)
class StreamBusy:
    """Another ask holds the stream."""

    wait_seconds: float


@dataclass(frozen=True, slots=True)
class Closed:
    stream_id: str


StreamOutcome = Claimed | StreamBusy | Closed
