"""Orders about streams to the ledger's writer, and their outcomes.

A charge opens a stream; the stream's row is stored with the answer of that charge. One ask at a
time holds the stream, under a lease. CLAIM uses one ask and raises the stream's version. The writer
accepts the ask's later writes only from its present attempt, at that version. So asks of one stream
are ordered, no crossing counts twice, and no crossing is revealed before it is stored.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from app.errors import AppError
from app.ledger.leaving import AT_ONCE, Leaving

NoisyNodes = Mapping[tuple[int, int], int]  # noisy count by first and last epoch


def stream_of(charge_id: str) -> str:
    """Id of the stream that a charge opens."""
    return f"s{charge_id[1:]}"


@dataclass(frozen=True, slots=True)
class NewStream:
    """Row of a stream, stored with the answer of its opening."""

    analyst_id: str
    charge_id: str
    dataset_id: str
    kind: str
    parameters: str  # JSON: the public parameters of its noise
    secret: str | None  # encrypted
    crossings: int | None
    asks_max: int | None

    @property
    def id(self) -> str:
        return stream_of(self.charge_id)


@dataclass(frozen=True, slots=True)
class Stream:
    """A stored stream, with the text of its opening."""

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
    digest: str | None  # of the source when the stream was opened

    @property
    def ended(self) -> bool:
        return self.crossings_left == 0 or self.asks_left == 0


@dataclass(frozen=True, slots=True)
class ClaimOrder:
    """Use one ask of a stream and hold it, or return the stored answer to this request key."""

    ask_id: str
    stream_id: str
    analyst_id: str
    request_key: str
    body_hash: str
    question: str  # canonical text of the ask
    version_id: str
    refusal: AppError | None  # why no new ask is allowed; a stored answer is still returned
    catalogue: int
    lease_seconds: float

    @property
    def request(self) -> str:
        return f"{self.stream_id}/{self.request_key}"


@dataclass(frozen=True, slots=True)
class AnswerAskOrder:
    """Store the answer and its change of the stream, if the stream has not changed since."""

    ask_id: str
    stream_id: str
    attempt: int
    fence: int
    answer: str
    crossed: bool
    nodes: NoisyNodes  # drawn for this answer
    leaving: Leaving = AT_ONCE


@dataclass(frozen=True, slots=True)
class ForfeitAskOrder:
    """Forfeit an ask: the engine was queried and failed. The ask is used, without an answer."""

    ask_id: str
    stream_id: str
    attempt: int
    fence: int
    leaving: Leaving = AT_ONCE


@dataclass(frozen=True, slots=True)
class CloseOrder:
    """Close a stream: it takes no more asks, and nothing is refunded."""

    stream_id: str
    analyst_id: str


StreamOrder = ClaimOrder | AnswerAskOrder | ForfeitAskOrder | CloseOrder


@dataclass(frozen=True, slots=True)
class Claimed:
    """The ask is used, durably, and this caller holds the stream: it may query the engine."""

    ask_id: str
    attempt: int
    fence: int
    version_id: str
    crossings_left: int | None
    asks_left: int | None
    nodes: NoisyNodes


@dataclass(frozen=True, slots=True)
class StreamBusy:
    """Another ask holds the stream."""

    wait_seconds: float


@dataclass(frozen=True, slots=True)
class Closed:
    stream_id: str


StreamOutcome = Claimed | StreamBusy | Closed
