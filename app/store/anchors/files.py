"""Anchor files outside the database: the ends of books and stamp chains after each commit.

Each process appends to its own file in every anchor folder, within milliseconds of the commit and
without a flush. So an anchor is never ahead of the ledger, but may be slightly behind. After a
crash it may miss the last commits, and then cannot reveal their loss. The folder is named after the
ledger, so that files of another ledger are not mistaken for ours.
"""

import asyncio
import contextlib
import errno
import fcntl
import hashlib
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from threading import Lock

from app.ledger.chain import Book
from app.ledger.stamp import StampChain
from app.names import new_id
from app.store.anchors.anchor_content import AnchorContent, MergedEnds
from app.store.anchors.lines import Anchor, BookEnd, book_line, read_anchor, stamp_line

BYTES_MAX = 4 << 20  # of one file; a longer one is rewritten from memory
DELAY_SECONDS = 0.02  # commits within this time are written together
_log = logging.getLogger("bursar.anchors")


def ledger_identity(secret: str) -> str:
    """Public identity of a ledger, the same for all its copies; reveals nothing of the secret."""
    return hashlib.sha256(f"bursar ledger {secret}".encode()).hexdigest()[:32]


class AnchorFiles:
    """This process's anchor. The event loop and administrative threads append to it."""

    def __init__(self, folders: Iterable[Path], identity: str) -> None:
        self.identity = identity
        self.folders = [folder / identity for folder in folders]
        self._name = f"{new_id('p')}.anchor"
        self._files: list[int] = []
        self._size = 0
        self._size_max = BYTES_MAX
        self._torn = False  # True if the last write failed, possibly in the middle of a line
        self._lock = Lock()
        self._content = AnchorContent()
        self._ends: dict[str, tuple[int, str]] = {}  # of the books that this process has written
        self._standing: int | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._coming: list[tuple[Callable[[], list[BookEnd]], StampChain | None]] = []

    # Writing

    def append_soon(self, ends: Callable[[], list[BookEnd]], stamps: StampChain | None) -> None:
        """Schedule the ends of a batch to be written after a short delay.

        Commits within the delay are written together, at a fraction of the cost.
        """
        loop = asyncio.get_running_loop()
        with self._lock:
            self._coming.append((ends, stamps))
            if len(self._coming) == 1 or loop is not self._loop:
                self._loop = loop
                loop.call_later(DELAY_SECONDS, self.flush)

    def flush(self) -> None:
        with self._lock:
            self._take()

    def _take(self) -> None:
        """Write the scheduled ends.

        Only the last end of a book carries its accounts' spends. The earlier ones are points where
        a restored copy may end.
        """
        coming, self._coming = self._coming, []
        merged: dict[str, MergedEnds] = {}
        stamps: dict[str, StampChain] = {}
        lines = []
        for batch_ends, chain in coming:
            for end in batch_ends():
                before = merged.get(end.id)
                if before is None:
                    before = merged[end.id] = MergedEnds(end)
                else:
                    lines.append(book_line(BookEnd(*before.end[:3])))
                    self._content.pass_by(before.end)
                before.add(end)
            if chain is not None:
                stamps[chain.id] = chain
        if merged or stamps:
            self._put([each.whole() for each in merged.values()], list(stamps.values()), (), lines)

    def append(
        self,
        ends: Sequence[BookEnd],
        stamps: StampChain | None = None,
        terms_and_marks: Sequence[str] = (),
    ) -> None:
        """Write the ends of one commit now."""
        with self._lock:
            self._take()
            self._put(ends, [] if stamps is None else [stamps], terms_and_marks, [])

    def _put(
        self,
        ends: Sequence[BookEnd],
        stamps: Sequence[StampChain],
        terms_and_marks: Sequence[str],
        first: list[str],
    ) -> None:
        """Write lines to every folder.

        A folder that cannot be written must not stop a committed charge. The failure is logged, and
        the next write tries again.
        """
        for end in ends:
            self._ends[end.id] = end.seq, end.head
        self._content.note(ends, stamps, terms_and_marks)
        lines = [*first, *map(book_line, ends), *map(stamp_line, stamps), *terms_and_marks]
        try:
            self._write("".join(lines))
        except OSError as error:
            self._torn = True
            _log.error("cannot write an anchor file: %s", error.strerror)

    def _write(self, lines: str) -> None:
        if not self._files:
            self._open()
        # After a torn write the whole content is written again, so that nothing is missing.
        raw = f"\n{self._content.text()}".encode() if self._torn else lines.encode()
        for descriptor in self._files:
            if os.write(descriptor, raw) != len(raw):
                self._torn = True
                return
        self._torn = False
        self._size += len(raw)
        if self._size > self._size_max:
            self._shorten()

    def make_folders(self) -> None:
        for folder in self.folders:
            for each in (*reversed(folder.parents), folder):  # parents must be private too
                if not each.exists():
                    each.mkdir(exist_ok=True, mode=0o700)
            if not os.access(folder, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    def _open(self) -> None:
        self.make_folders()
        self._files = [_opened(folder / self._name) for folder in self.folders]

    def _shorten(self) -> None:
        files, self._files = self._files, []
        raw = self._content.text().encode()
        for folder, descriptor in zip(self.folders, files, strict=True):
            aside = folder / f"{self._name}.new"
            aside.unlink(missing_ok=True)
            self._files.append(_opened(aside))
            os.write(self._files[-1], raw)
            aside.rename(folder / self._name)
            os.close(descriptor)
        self._size = len(raw)
        self._size_max = max(BYTES_MAX, 2 * len(raw))  # keeps rewriting rare at any size

    def close(self) -> None:
        with self._lock:
            self._take()
            for descriptor in self._files:
                with contextlib.suppress(OSError):
                    os.fsync(descriptor)
                os.close(descriptor)
            self._files = []

    # Reading

    def has_lost(self, standing: int, books: Iterable[Book]) -> bool:
        """True if one of these books, as just read, lacks entries that this process committed.

        Once the difference is booked (`standing` changes), only later commits count.
        """
        with self._lock:
            self._take()
            if self._standing is None:
                self._standing = standing
            elif standing != self._standing:
                self._begin_anew(standing)
            for book in books:
                seq, head = self._ends.get(book.id, (0, ""))
                if book.seq < seq or (book.seq == seq and book.head != head):
                    return True
        return False

    def _begin_anew(self, standing: int) -> None:
        """Forget earlier commits: they may concern entries that are lost."""
        self._standing = standing
        self._ends.clear()
        self._content = AnchorContent()

    def read(self) -> list[Anchor]:
        """Read the anchors that all processes have left for this ledger, in every folder."""
        anchors = []
        for folder in self.folders:
            for path in sorted(folder.glob("*.anchor")):
                with contextlib.suppress(FileNotFoundError):  # removed by another process meanwhile
                    text = path.read_bytes().decode(errors="replace")
                    anchors.append(read_anchor(path.name, text.split("\n")[:-1]))
        return anchors

    def others(self) -> list[str]:
        """Identities of other ledgers with anchors in the same folders."""
        parents = {folder.parent for folder in self.folders}
        found = {path.name for parent in parents for path in parent.glob("*/") if path.is_dir()}
        return sorted(found - {self.identity})

    def replace_ended(
        self,
        standing: int,
        anchors: Iterable[Anchor],
        ends: Sequence[BookEnd],
        terms_and_marks: Sequence[str],
    ) -> None:
        """Start a new anchor from these anchors, and remove the files of ended processes.

        The ledger must contain all points and stamps of `anchors`. `ends` is where it ends now.
        """
        ended = [path for folder in self.folders for path in _ended(folder, self._name)]
        with self._lock:
            self._take()
            self._begin_anew(standing)
            self._content.inherit(anchors)
            self._torn = True  # makes the next write put out the whole content
        self.append(ends, None, terms_and_marks)
        with self._lock:
            if self._torn:
                return
            for descriptor in self._files:
                os.fsync(descriptor)
        for path in ended:
            path.unlink(missing_ok=True)


def in_use(folders: Iterable[Path], identity: str) -> bool:
    """True if a living process writes anchors of this ledger."""
    for folder in (each / identity for each in folders):
        if len(set(folder.glob("*.anchor")) - set(_ended(folder, ""))) > 0:
            return True
    return False


def _opened(path: Path) -> int:
    """Open a file and lock it while this process lives: the lock shows that it is in use."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(OSError):  # without file locks, no file counts as ended
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def _ended(folder: Path, own: str) -> Iterator[Path]:
    """Files whose process has ended."""
    for path in folder.glob("*.anchor"):
        if path.name == own:
            continue
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue  # a process holds it
        finally:
            os.close(descriptor)
        yield path
