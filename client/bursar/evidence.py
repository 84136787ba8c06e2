"""Check evidence offline: an export of the ledger, and a receipt against it.

An entry's hash is the SHA-256 of the hash before it, a line break and the entry's text. So nobody
can change, add or remove an entry without changing every later hash. `bursard verify --file` also
recomputes the totals of every account.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bursar.errors import BadQuestion

FIRST_PREVIOUS = "0" * 64


@dataclass(frozen=True)
class Evidence:
    """An export after its check. It is sound if there are no findings."""

    entries: int
    books: int
    findings: tuple[str, ...]
    receipts: Mapping[str, tuple[int, str]] = field(repr=False)  # entry and hash by question
    hashes: Mapping[tuple[str, int], str] = field(repr=False)  # by book and entry

    @property
    def sound(self) -> bool:
        return not self.findings


class _Checker:
    def __init__(self) -> None:
        self.findings: list[str] = []
        self.heads: dict[str, tuple[int, str]] = {}  # of the entries read so far
        self.hashes: dict[tuple[str, int], str] = {}
        self.receipts: dict[str, tuple[int, str]] = {}
        self.counts = dict.fromkeys(("entries", "books", "accounts", "charges"), 0)
        self.ends = hashlib.sha256()
        self.ended = False

    def add(self, line: Mapping[str, Any]) -> None:
        match line:
            case {"type": "entry", "text": str(text), "hash": str(stated)}:
                self.counts["entries"] += 1
                self._entry(text, stated)
            case {"type": "book", "book": str(book), "seq": int(seq), "head": str(head)}:
                self.counts["books"] += 1
                self.ends.update(f"{book} {seq} {head}\n".encode())
                if self.heads.get(book, (0, FIRST_PREVIOUS)) != (seq, head):
                    self.findings.append(f"book {book}: its end is not that of its entries")
            case {"type": "account"}:
                self.counts["accounts"] += 1
            case {"type": "charge", "charge": str(charge), "receipt": [int(entry), str(stated)]}:
                self.counts["charges"] += 1
                self.receipts[charge] = entry, stated
                if self.hashes.get((str(line["book"]), entry)) != stated:
                    self.findings.append(f"charge {charge}: its receipt is not in its book")
            case {"type": "charge"}:
                self.counts["charges"] += 1
            case {"type": "end"}:
                self._end(line)
            case {"type": "ledger"}:
                pass
            case _:
                self.findings.append("a line is of no known type")

    def _entry(self, text: str, stated: str) -> None:
        body = json.loads(text)
        book, seq = str(body["book"]), int(body["seq"])
        before, previous = self.heads.get(book, (0, FIRST_PREVIOUS))
        if seq != before + 1:
            self.findings.append(f"book {book}: entry {seq} follows entry {before}")
        if hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest() != stated:
            self.findings.append(f"book {book}: the hash of entry {seq} does not fit")
        self.heads[book] = seq, stated
        self.hashes[book, seq] = stated

    def _end(self, line: Mapping[str, Any]) -> None:
        self.ended = True
        stated = {name: line.get(name) for name in self.counts}
        if stated != self.counts or line.get("heads") != self.ends.hexdigest():
            self.findings.append("the last line does not fit: lines are missing or were added")


def check_export(path: Path | str) -> Evidence:
    """Check the chains of an export. Nothing is sent anywhere."""
    checker = _Checker()
    try:
        with Path(path).open(encoding="utf-8") as file:
            for line in _objects(file):
                checker.add(line)
    except (OSError, UnicodeDecodeError) as error:
        raise BadQuestion(f"{path} cannot be read: {type(error).__name__}.") from None
    except (ValueError, KeyError, TypeError):
        raise BadQuestion(f"{path} is not an export of a ledger.") from None
    if not checker.ended:
        checker.findings.append("the last line is missing: the file was cut off")
    counts = checker.counts
    return Evidence(
        counts["entries"],
        counts["books"],
        tuple(checker.findings),
        checker.receipts,
        checker.hashes,
    )


def _objects(file: Iterable[str]) -> Iterable[dict[str, Any]]:
    for text in file:
        line = json.loads(text)
        if not isinstance(line, dict):
            raise ValueError("not an object")
        yield line


def answers_in(value: Any) -> list[Mapping[str, Any]]:
    """The answers in a JSON file: one, those of separately asked groups, or a list of them."""
    match value:
        case {"receipt": Mapping()}:
            return [value]
        case {"answers": list(answers)} | list(answers) if answers:
            return [one for inner in answers for one in answers_in(inner)]
    raise BadQuestion(
        "The file holds no answer with a receipt.", hint="Write it with: bursar ask ... --full"
    )


def check_receipt(answer: Mapping[str, Any], evidence: Evidence) -> str | None:
    """The problem of an answer's receipt, or None if the export has its charge."""
    receipt, query_id = answer.get("receipt"), answer.get("id")
    if not isinstance(receipt, Mapping) or not isinstance(query_id, str):
        raise BadQuestion("The file holds no answer with a receipt.")
    listed = evidence.receipts.get(query_id)
    if listed is None:
        return f"the export has no charge {query_id}"
    if listed != (receipt.get("entry"), receipt.get("hash")):
        return f"the receipt of {query_id} is not the one in the export"
    return None
