"""Compare rows with entries: charges, stored answers, streams, fingerprints, datasets and people.

Entries come first and state what must exist; rows follow. Large sets are compared as hashes,
because a ledger may hold millions of charges.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from app.ledger.chain import Entry, canonical
from app.ledger.stamp import SettledRow
from app.ledger.verification.lines import (
    AskRow,
    ChargeRow,
    DatasetRow,
    FingerprintRow,
    KeyRow,
    LedgerLine,
    PersonRow,
    StreamRow,
    VersionRow,
)
from app.ledger.verification.stamps import StampChecker
from app.names import folded

ReportProblem = Callable[..., None]


class _Entered(NamedTuple):
    """A charge as its entry states it, hashed."""

    book: str
    facts: int
    voided: bool = False


class RowChecker:
    def __init__(self, report: ReportProblem) -> None:
        self._report = report
        self.stored = False  # True if rows include content that only the store can check
        self._charges: dict[str, _Entered] = {}
        self._stamps = StampChecker(self._stamp_problem)
        self._streams: dict[str, StreamRow] = {}
        self._used: Counter[str] = Counter()  # number of asks by stream
        self._crossed: Counter[str] = Counter()
        self._marks: dict[str, str] = {}  # book by fingerprint, as entries state it
        self._datasets: dict[tuple[str, str], dict[str, Any]] = {}
        self._versions: dict[str, tuple[tuple[str, str], dict[str, Any]]] = {}
        self._celled: dict[str, bool] = {}  # by book: whether a card declares cells
        self._celled_rows: dict[str, bool] = {}  # by book, as its row states it
        self._people: dict[str, dict[str, Any]] = {}
        self._keys: dict[str, dict[str, Any]] = {}

    def _stamp_problem(self, book: str, charge: str, problem: str) -> None:
        self._report(book, problem, charge=charge)

    # Entries

    def entry(self, entry: Entry, body: dict[str, Any]) -> None:
        match entry.kind:
            case "charge":
                priced = body["epsilon"], body["delta"], body["version"], body["row"]
                facts = hash((*priced, entry.seq, entry.hash))
                self._charges[body["charge"]] = _Entered(entry.book_id, facts)
            case "void":
                charge = self._charges.get(body["charge"])
                if charge is not None:
                    self._charges[body["charge"]] = charge._replace(voided=True)
            case "dataset_registered" | "dataset_changed" | "epoch_appended" | "version_declared":
                self._dataset_entry(entry, body)
            case "dataset_withdrawn":
                self._withdrawn((entry.book_id, str(body.get("dataset"))))
                if body.get("data_released"):
                    self._release(entry.book_id)
            case "reconciled":
                self._marks.update(dict.fromkeys(body.get("fingerprints", ()), entry.book_id))
            case "analyst_created" | "analyst_changed" | "key_issued" | "key_revoked":
                self._people_entry(entry.kind, body)

    def _people_entry(self, kind: str, body: dict[str, Any]) -> None:
        match kind, body:
            case "analyst_created" | "analyst_changed", {"analyst": str(name), "after": after}:
                state = {"enabled": True, "groups": [], "folded": folded(name)}
                state |= self._people.get(name, {})
                self._people[name] = state | dict(after)
            case "key_issued", {"analyst": str(name), "after": {"key": str(key), **more}}:
                names = ("expires_at", "token_hash")
                stated: dict[str, Any] = {fact: more[fact] for fact in names if fact in more}
                self._keys[key] = {"analyst": name, "revoked": False, **stated}
            case "key_revoked", {"before": {"key": str(key)}}:
                self._keys.setdefault(key, {})["revoked"] = True

    def _dataset_entry(self, entry: Entry, body: dict[str, Any]) -> None:
        after = body.get("after") or {}
        key = entry.book_id, str(body.get("dataset"))
        known = self._datasets.setdefault(key, {"closed": False, "folded": folded(key[1])})
        names = ("card", "source", "version", "description", "closed")
        known |= {name: after[name] for name in names if name in after}
        if "version" in after:
            content = {"content": after["version_hash"]} if "version_hash" in after else {}
            self._versions[after["version"]] = key, content
        if "fingerprints" in after:
            self._marks.update(dict.fromkeys(after["fingerprints"], entry.book_id))

    def _withdrawn(self, dataset: tuple[str, str]) -> None:
        self._datasets.pop(dataset, None)
        self._versions = {
            version: stated for version, stated in self._versions.items() if stated[0] != dataset
        }

    def _release(self, book: str) -> None:
        """Drop the fingerprints of a book that lost its last name without a charge."""
        self._marks = {mark: each for mark, each in self._marks.items() if each != book}

    # Rows

    def row(self, line: LedgerLine) -> None:
        match line:
            case ChargeRow():
                self._charge(line)
            case StreamRow():
                self._streams[line.id] = line
            case AskRow():
                self._ask(line)
            case FingerprintRow():
                self._fingerprint(line)
            case DatasetRow():
                self._dataset(line)
            case VersionRow():
                (book, _), stated = self._versions.pop(line.id, (("", ""), None))
                known = None if book != line.book else stated
                self._compare(line.book, f"version {line.id}", known, line.facts)
            case PersonRow():
                self._compare("system", line.name, self._people.pop(line.name, None), line.facts)
            case KeyRow():
                self._compare("system", line.id, self._keys.pop(line.id, None), line.facts)

    def _charge(self, row: ChargeRow) -> None:
        entered = self._charges.pop(row.id, None)
        if row.reused:
            self._reuse(row, entered)
            return
        if entered is None:
            self._report(row.book, "the charge has no entry", charge=row.id)
            return
        priced = row.epsilon, row.delta, row.version, row.asked
        facts = (*priced, *(row.receipt or (0, "")))
        if entered.facts != hash(facts) or entered.book != row.book:
            self._report(row.book, "the charge differs from its entry", charge=row.id)
        if entered.voided != (row.state == "voided"):
            problem = "the charge and its refund entry disagree"
            self._report(row.book, problem, charge=row.id)
        self._settled(row)

    def _reuse(self, row: ChargeRow, entered: _Entered | None) -> None:
        if entered is not None:
            self._report(row.book, "it was charged, but repeats another's answer", charge=row.id)
        if not row.reuse_holds:
            self._report(row.book, "the answer that it repeats is not there", charge=row.id)
        self._settled(row)

    def _settled(self, row: ChargeRow | AskRow) -> None:
        if not self.stored:
            return
        book = row.book if isinstance(row, ChargeRow) else row.stream
        if row.stamp is not None:
            if row.state == "charged":
                self._report(book, "it is shown as open, but has a stamp", charge=row.id)
            settled = SettledRow(row.id, row.state, row.settled_at, row.content)
            self._stamps.row(book, row.stamp, settled)
        elif row.state != "charged":
            self._report(book, "it is settled without a stamp", charge=row.id)

    def _ask(self, row: AskRow) -> None:
        self._used[row.stream] += 1
        self._crossed[row.stream] += row.state == "answered" and row.crossed
        if row.stamp is None and row.closed:
            return
        self._settled(row)

    def _fingerprint(self, row: FingerprintRow) -> None:
        book = self._marks.pop(row.fingerprint, None)
        if book is None:
            self._report(row.book, "no entry names one of its fingerprints")
        elif book != row.book:
            self._report(book, "one of its fingerprints leads to another book")

    def _dataset(self, row: DatasetRow) -> None:
        known = self._datasets.pop((row.book, row.name), None)
        self._compare(row.book, f"dataset {row.name}", known, row.facts)
        cells = row.facts["card"].get("cells") if isinstance(row.facts["card"], dict) else None
        self._celled[row.book] = self._celled.get(row.book, False) or cells is not None
        self._celled_rows[row.book] = row.celled

    def _compare(
        self, book: str, what: str, known: dict[str, Any] | None, facts: dict[str, Any]
    ) -> None:
        """Compare the facts that entries state."""
        if known is None:
            self._report(book, f"{what}: no entry created it")
            return
        for name in sorted(known.keys() & facts.keys()):
            if canonical(known[name]) != canonical(facts[name]):
                self._report(book, f"{what}: its {name} differs from the entries")

    # The end

    def finish(self, *, whole: bool) -> None:
        for charge, entered in self._charges.items():
            self._report(entered.book, "the entry's charge is not there", charge=charge)
        if not self.stored:
            return
        if whole:
            self._stamps.finish()
        for book in sorted(set(self._marks.values())):
            self._report(book, "one of its fingerprints is not there")
        for book, name in sorted(self._datasets):
            self._report(book, f"dataset {name}: it is not there")
        for version, ((book, _), _) in sorted(self._versions.items()):
            self._report(book, f"version {version}: it is not there")
        for book, celled in self._celled.items():
            if celled != self._celled_rows[book]:
                self._report(book, "the book and its cards disagree on cells")
        for stream in self._streams.values():
            self._stream(stream)
        if whole:
            self._missing(self._people)
            self._missing(self._keys)

    def _missing(self, names: Iterable[str]) -> None:
        for name in sorted(names):
            self._report("system", f"{name}: it is not there")

    def _stream(self, row: StreamRow) -> None:
        if row.began is None:
            self._report(row.id, "the stream's opening is not there", charge=row.charge)
            return
        if not row.fits:
            problem = "the stream has another analyst or dataset than its charge"
            self._report(row.id, problem, charge=row.charge)
        crossings, asks = row.began
        expected = (
            None if crossings is None else crossings - self._crossed[row.id],
            None if asks is None else asks - self._used[row.id],
        )
        if row.left != expected:
            problem = "the stream's remaining asks or crossings do not match its asks"
            self._report(row.id, problem, charge=row.charge)
