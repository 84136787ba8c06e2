"""The hash chain of a book: each entry's hash covers its own text and the hash before it.

The text that is hashed is the text that is stored and exported, byte for byte; it is never made
again from columns or from a JSON type that a database may reorder.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

FIRST_PREVIOUS = "0" * 64
SYSTEM_BOOK = "system"  # people and keys: changes that belong to no dataset
# Of entries: never renamed or given a new meaning.
ENTRY_KINDS = (
    "charge",
    "void",
    "booked",
    "grant",
    "book_opened",
    "dataset_registered",
    "dataset_changed",
    "epoch_appended",
    "version_declared",
    "dataset_withdrawn",
    "reconciled",
    "charging_stopped",
    "charging_resumed",
    "analyst_created",
    "analyst_changed",
    "key_issued",
    "key_revoked",
)

_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def canonical(value: Any) -> str:
    """One text for one value: sorted keys, no spaces."""
    return _ENCODER.encode(value)


quoted = lru_cache(maxsize=4096)(canonical)  # names that come again and again


def link(previous: str, text: str) -> str:
    return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()


class Entry(NamedTuple):
    """One line of a book. Kinds are never renamed or given a new meaning."""

    book_id: str
    seq: int
    at: int  # microseconds since 1970, never going back within a book
    kind: str
    text: str
    hash: str


@dataclass(slots=True)
class Book:
    """The end of a chain, to which entries are appended under the book's lock."""

    id: str
    seq: int
    head: str
    last_at: int

    def append(self, *, kind: str, actor: str, at: int, body: dict[str, Any]) -> Entry:
        return self.append_text(kind=kind, actor=actor, at=at, body=canonical(body))

    def append_text(self, *, kind: str, actor: str, at: int, body: str) -> Entry:
        """The same for a body that is canonical text already."""
        self.seq += 1
        self.last_at = max(self.last_at, at)
        text = (
            f'{{"actor":{quoted(actor)},"at":{self.last_at},"body":{body},'
            f'"book":{quoted(self.id)},"kind":{quoted(kind)},"seq":{self.seq}}}'
        )
        self.head = link(self.head, text)
        return Entry(self.id, self.seq, self.last_at, kind, text, self.head)
