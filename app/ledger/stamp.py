"""Stamps: a hash chain over settled charges and asks, beside the chains of the books.

A book's chain is written when a charge is made. The answer comes later, often through another
connection, and must not wait for the book's lock. So every writing connection keeps its own chain.
Each row that it settles gets a stamp: the chain, the sequence number, and a hash. The hash covers
the previous stamp, the row's id, its final state, its time and a keyed digest of the stored
content.

An edited or exchanged answer, or another state, does not match its stamp. A removed row leaves a
gap. The anchors reveal a removed tail, because they hold the newest stamp of each chain.
"""

import hashlib
from typing import NamedTuple

from app.ledger.chain import FIRST_PREVIOUS, canonical
from app.ledger.stream_orders import NewStream, NoisyNodes
from app.names import new_id

NOTHING_STORED = "-"  # content of a row that was settled without an answer


class Stamp(NamedTuple):
    """One link in a chain of settled rows."""

    chain: str
    seq: int
    link: str

    def text(self) -> str:
        return f"{self.chain} {self.seq} {self.link}"


def stamp_from(text: str) -> Stamp:
    """Parse a stamp; raises ValueError if the text is none."""
    chain, seq, link = text.split(" ")
    if not seq.isdecimal() or not seq.isascii():
        raise ValueError("the sequence number of a stamp must be an integer")
    return Stamp(chain, int(seq), link)


def stamp_key(secret: str) -> bytes:
    """Key of all stamps of a ledger, derived from the secret of its installation."""
    return hashlib.sha256(f"bursar stamps {secret}".encode()).digest()


def stored_digest(key: bytes, *parts: str | None) -> str:
    """Keyed digest of a row's stored content.

    Possible answers are few: a bare hash in an anchor would let a reader guess the answer. The key
    has a fixed length and comes first.
    """
    if len(parts) == 1 and parts[0] is not None:
        stored = parts[0]
    else:
        stored = "\0".join([part or "" for part in parts])
    return hashlib.sha256(key + stored.encode()).hexdigest()


Settling = tuple[str, str, int | None, str]  # id, state, time and content of a row


def next_link(previous: str, chain: str, seq: int, settled: Settling) -> str:
    row_id, state, at, content = settled
    text = f"{previous}\n{chain} {seq} {row_id} {state} {at} {content}"
    return hashlib.sha256(text.encode()).hexdigest()


class SettledRow(NamedTuple):
    """The row that a stamp covers."""

    id: str
    state: str
    settled_at: int | None
    content: str


# Stored content of each kind of row, as its stamp covers it


def stored_with(answer: str, stream: NewStream | None) -> tuple[str | None, ...]:
    """Content of an answer; for the opening of a stream, including the stream."""
    if stream is None:
        return (answer,)
    return answer, stream.kind, stream.parameters, stream.secret


def reused_content(
    charge_id: str, request: str, body_hash: str, question: str, charged: str
) -> tuple[str, ...]:
    """Content of a repetition: another charge's answer, returned again under this request key."""
    return "reused", charge_id, request, body_hash, question, charged


class AskedFor(NamedTuple):
    """The request of an ask, as its stamp covers it."""

    request: str
    body_hash: str
    version_id: str
    question: str


def ask_content(answer: str, nodes: NoisyNodes, asked_for: AskedFor) -> tuple[str, ...]:
    """Content of an ask's answer: its request, and the noisy counts that were drawn for it."""
    drawn = sorted([first, last, noisy] for (first, last), noisy in nodes.items())
    return answer, canonical(drawn), *asked_for


def new_chain(key: bytes) -> "StampChain":
    """A new chain with a short unique name."""
    return StampChain(hashlib.sha256(new_id("c").encode()).hexdigest()[:20], key)


class StampChain:
    """End of one chain. Only the connection that started it appends."""

    __slots__ = ("id", "key", "link", "row", "seq")

    def __init__(
        self, chain: str, key: bytes, seq: int = 0, link: str = FIRST_PREVIOUS, row: str = ""
    ) -> None:
        self.id = chain
        self.key = key
        self.seq = seq
        self.link = link
        self.row = row  # id of the row stamped last

    def copy(self) -> "StampChain":
        return StampChain(self.id, self.key, self.seq, self.link, self.row)

    def stamp(self, row_id: str, state: str, settled_at: int | None, *stored: str | None) -> str:
        """Text of the next stamp; a row without an answer has no stored content."""
        content = stored_digest(self.key, *stored) if stored else NOTHING_STORED
        self.seq += 1
        settled = (row_id, state, settled_at, content)
        self.link = next_link(self.link, self.id, self.seq, settled)
        self.row = row_id
        return f"{self.id} {self.seq} {self.link}"


def asked_digest(
    request: str, body_hash: str, reuse_key: str, dataset_id: str, question: str
) -> str:
    """Digest of a charge row's request: content, analyst and request key. Its entry records it.

    Half a hash keeps entries short; nobody can make another row that matches its 128 bits.
    """
    text = "\0".join((request, body_hash, reuse_key, dataset_id, question))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
