"""Stamps: a hash chain over what became of charges and asks, beside the chains of the books.

A book's chain is written when a charge is made. The answer comes later, often through another
connection, and must not wait for the book's lock. So every writing connection keeps a chain of its
own. Whatever it settles gets a stamp: the chain, the place in it, and a hash of the previous stamp,
the row's id, its final state, its time and a keyed digest of what is stored with it.

An edited or exchanged answer, or another state, does not fit its stamp. A removed row leaves a gap.
A cut tail is found by the anchors, which hold the newest stamp of each chain.
"""

import hashlib
from typing import NamedTuple

from app.ledger.chain import FIRST_PREVIOUS, canonical
from app.ledger.stream_orders import NewStream, Nodes
from app.names import new_id

NOTHING_STORED = "-"  # the content of a row that was settled without an answer


class Stamp(NamedTuple):
    """One place in a chain of settled rows."""

    chain: str
    seq: int
    link: str

    def text(self) -> str:
        return f"{self.chain} {self.seq} {self.link}"


def stamp_from(text: str) -> Stamp:
    """Raises ValueError for what is no stamp."""
    chain, seq, link = text.split(" ")
    if not seq.isdecimal() or not seq.isascii():
        raise ValueError("a place in a chain is a whole number")
    return Stamp(chain, int(seq), link)


def stamp_key(secret: str) -> bytes:
    """The key of all stamps of a ledger, from the secret of its installation."""
    return hashlib.sha256(f"bursar stamps {secret}".encode()).digest()


def stored_digest(key: bytes, *parts: str | None) -> str:
    """What is stored with a row. The key, of fixed length, comes first: answers are few, and who
    sees a bare hash in an anchor could guess the answer."""
    if len(parts) == 1 and parts[0] is not None:
        stored = parts[0]
    else:
        stored = "\0".join([part or "" for part in parts])
    return hashlib.sha256(key + stored.encode()).hexdigest()


Settling = tuple[str, str, int | None, str]  # a row's id, state, time and content


def next_link(previous: str, chain: str, seq: int, settled: Settling) -> str:
    row_id, state, at, content = settled
    text = f"{previous}\n{chain} {seq} {row_id} {state} {at} {content}"
    return hashlib.sha256(text.encode()).hexdigest()


class SettledRow(NamedTuple):
    """What a stamp is about."""

    id: str
    state: str
    settled_at: int | None
    content: str


# What is stored with a row of each kind, as its stamp covers it


def stored_with(answer: str, stream: NewStream | None) -> tuple[str | None, ...]:
    """An answer; that of an opening with the stream that it began."""
    if stream is None:
        return (answer,)
    return answer, stream.kind, stream.parameters, stream.secret


def reused_content(charge_id: str, request: str, body_hash: str) -> tuple[str, ...]:
    """The answer of another charge, given again under this request key."""
    return "reused", charge_id, request, body_hash


def ask_content(answer: str, nodes: Nodes) -> tuple[str, ...]:
    """The answer of an ask, with the noisy counts that were drawn for it."""
    return answer, canonical(sorted([first, last, noisy] for (first, last), noisy in nodes.items()))


def new_chain(key: bytes) -> "StampChain":
    """A chain under a short name that no other has."""
    return StampChain(hashlib.sha256(new_id("c").encode()).hexdigest()[:20], key)


class StampChain:
    """The end of one chain. Only the connection that began it appends."""

    __slots__ = ("id", "key", "link", "row", "seq")

    def __init__(
        self, chain: str, key: bytes, seq: int = 0, link: str = FIRST_PREVIOUS, row: str = ""
    ) -> None:
        self.id = chain
        self.key = key
        self.seq = seq
        self.link = link
        self.row = row  # the id of the row that was stamped last

    def copy(self) -> "StampChain":
        return StampChain(self.id, self.key, self.seq, self.link, self.row)

    def stamp(self, row_id: str, state: str, settled_at: int | None, *stored: str | None) -> str:
        """The text of the next stamp; without anything stored the row has no answer."""
        content = stored_digest(self.key, *stored) if stored else NOTHING_STORED
        self.seq += 1
        settled = (row_id, state, settled_at, content)
        self.link = next_link(self.link, self.id, self.seq, settled)
        self.row = row_id
        return f"{self.id} {self.seq} {self.link}"


def asked_digest(
    request: str, body_hash: str, reuse_key: str, dataset_id: str, question: str
) -> str:
    """What a charge row says was asked, by whom and under which request key: its entry has it.
    Half of a hash: nobody can make another row that fits 128 bits, and entries stay short."""
    text = "\0".join((request, body_hash, reuse_key, dataset_id, question))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
