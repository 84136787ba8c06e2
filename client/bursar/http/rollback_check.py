"""The last charge that this client saw on each server, to notice a ledger that was rolled back.

Entries of a ledger only grow in number. A server that has lost the last charge, or numbers a new
charge like an old one, runs on an older copy of its ledger: its budgets are too large. The client
then refuses to ask.
"""

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from bursar.errors import NotFound, RolledBack
from bursar.http.flow import Call, Flow, send

Mark = dict[str, Any]  # id of the question, entry and hash of its receipt


def state_folder() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "bursar"


class SeenCharges:
    """The newest charge on each dataset, for one server and key; kept in a file if it can be."""

    def __init__(self, url: str, key: str, folder: Path | None) -> None:
        digest = hashlib.sha256(f"{url}\n{key}".encode()).hexdigest()[:32]
        self._file = None if folder is None else folder / f"seen-{digest}.json"
        self._marks: dict[str, Mark] = self._read()

    def _read(self) -> dict[str, Mark]:
        if self._file is None:
            return {}
        try:
            marks = json.loads(self._file.read_text())
        except (OSError, ValueError):
            return {}
        return marks if isinstance(marks, dict) else {}

    def entry(self, dataset: str) -> int:
        """The largest entry seen on a dataset; 0 if there is none."""
        return int(self._marks.get(dataset, {}).get("entry", 0))

    def check(self, dataset: str) -> Flow[None]:
        """Before every question: the server must still know the last charge on its dataset."""
        mark = self._marks.get(dataset)
        if mark is None:
            return
        try:
            reply = yield from send(Call("GET", f"/v1/queries/{mark['id']}"))
            receipt = reply.json().get("receipt")
        except NotFound:
            receipt = {}
        if receipt != {"entry": mark["entry"], "hash": mark["hash"]}:
            raise self._error(dataset)

    def check_all(self) -> Flow[None]:
        """Where the dataset of a question is not known: the last charge on every dataset."""
        for dataset in list(self._marks):
            yield from self.check(dataset)

    def note(self, dataset: str, members: dict[str, Any], *, before: int, new: bool) -> None:
        """Remember a charge. `before` is the largest entry seen when the question was sent."""
        receipt = members.get("receipt")
        if receipt is None or not str(members.get("id", "")).startswith("q_"):
            return
        entry = int(receipt["entry"])
        mark = self._marks.get(dataset)
        same_number = mark is not None and mark["entry"] == entry
        if (new and entry <= before) or (same_number and mark["hash"] != receipt["hash"]):  # type: ignore[index]
            raise self._error(dataset)
        if mark is None or entry > mark["entry"]:
            self._marks[dataset] = {"id": members["id"], **receipt}
            self._write()

    def _write(self) -> None:
        if self._file is None:
            return
        with contextlib.suppress(OSError):  # a home that cannot be written is no reason to stop
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            temporary = self._file.with_suffix(f".{os.getpid()}")
            temporary.write_text(json.dumps(self._marks))
            temporary.replace(self._file)

    def _error(self, dataset: str) -> RolledBack:
        return RolledBack(
            f"The server has lost a charge on {dataset} that this client has seen (entry "
            f"{self.entry(dataset)}). Its ledger was restored from an older copy, or replaced.",
            hint="Ask an administrator. If the server is meant to be new, delete "
            f"{self._file or 'nothing: connect again'}.",
        )
