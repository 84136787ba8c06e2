"""Hash chain of a book: each entry's hash covers its own text and the previous hash.

The hashed text is stored and exported byte for byte. It is never rebuilt from columns, or from a
JSON type that a database may reorder.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

FIRST_PREVIOUS = "0" * 64
SYSTEM_BOOK = "system"  # changes of people and keys, which belong to no dataset
# Kinds of entries; never renamed, and never given a new meaning.
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
    """Canonical JSON: one text for one value, with sorted keys and no spaces."""
    return _ENCODER.encode(value)


quoted = lru_cache(maxsize=4096)(canonical)  # for names that repeat


def link(previous: str, text: str) -> str:
    return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()


class Entry(NamedTuple):
    """One line of a book. Kinds are never renamed or given a new meaning."""

    book_id: str
    seq: int
    at: int  # microseconds since 1970; never decreases within a book
    kind: str
    text: str
    hash: str


@dataclass(slots=True)
class Book:
    """End of a chain; entries are appended under the book's lock."""

    id: str
    seq: int
    head: str
    last_at: int

    def append(self, *, kind: str, actor: str, at: int, body: dict[str, Any]) -> Entry:
        return self.append_text(kind=kind, actor=actor, at=at, body=canonical(body))

    def append_text(self, *, kind: str, actor: str, at: int, body: str) -> Entry:
        """Append an entry whose body is canonical text already."""
        self.seq += 1
        self.last_at = max(self.last_at, at)
        text = (
            f'{{"actor":{quoted(actor)},"at":{self.last_at},"body":{body},'
            f'"book":{quoted(self.id)},"kind":{quoted(kind)},"seq":{self.seq}}}'
        )
        self.head = link(self.head, text)
        return Entry(self.id, self.seq, self.last_at, kind, text, self.head)
