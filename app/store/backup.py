"""Copies of a ledger in SQLite: taken while servers run, checked, and put back.

A backup is a folder with the ledger and a manifest. It gets its name when it is complete, so a
folder of that name is never half a backup. The ledger that a restore replaces is kept beside it.
"""

import hashlib
import json
import os
import shutil
import time
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import apsw

from app.errors import Conflict, Invalid, StoreUnavailable
from app.mechanisms.sampling.system import secret_text
from app.store.anchors.files import ledger_identity
from app.store.connect import FileLock
from app.store.sqlite_driver import connect_to_look

FORMAT = "bursar backup 1"
LEDGER, MANIFEST, SECRET = "ledger.db", "manifest.json", "secret.key"
PAGES = 2000  # copied in one step
BUSY_MS = 10_000
CHUNK = 1 << 20
HELD = "A server or another command has the ledger open: stop it first. Nothing was changed."


@dataclass(frozen=True, slots=True)
class BookHead:
    book: str
    seq: int
    head: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """Description of a backup; `ledger` is the public identity of the ledger."""

    format: str
    ledger: str
    taken_at: str
    schema: str
    entries: int
    bytes: int
    sha256: str
    secret_key: bool  # whether the secret of streams is in the backup too
    books: tuple[BookHead, ...]


# Taking


def take(ledger: Path, target: Path, secret_key: Path | None) -> Manifest:
    """Copy the ledger into a new folder; servers may continue meanwhile."""
    if target.exists() or target.is_symlink():
        raise Conflict(f"{target} exists: name a new folder. Nothing was written.")
    aside = target.with_name(f".{target.name}.partial-{secret_text(6)}")
    aside.mkdir(mode=0o700)
    try:
        copy = aside / LEDGER
        _copy_pages(ledger, copy)
        if secret_key is not None:
            copy_file(secret_key, aside / SECRET)
        manifest = _describe(copy, secret_key=secret_key is not None)
        _write(aside / MANIFEST, json.dumps(asdict(manifest), indent=1).encode())
        _flush(aside)
        aside.rename(target)
        _flush(target.parent)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    return manifest


def _copy_pages(ledger: Path, copy: Path) -> None:
    """Copy one snapshot. Writers go on: a reader of a write-ahead log does not stop them."""
    os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        source = apsw.Connection(str(ledger), flags=apsw.SQLITE_OPEN_READWRITE)
        with closing(source), closing(apsw.Connection(str(copy))) as target:
            source.set_busy_timeout(BUSY_MS)
            source.execute("BEGIN")
            source.execute("SELECT count(*) FROM books").fetchall()  # the snapshot begins here
            with target.backup("main", source, "main") as work:
                while not work.done:
                    work.step(PAGES)
            source.execute("ROLLBACK")
            target.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
    except apsw.Error:
        raise StoreUnavailable(f"{ledger} cannot be copied: it is no ledger, or damaged.") from None
    _flush(copy)


def _describe(copy: Path, *, secret_key: bool) -> Manifest:
    books, identity, schema = _read(copy)
    return Manifest(
        format=FORMAT,
        ledger=identity,
        taken_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        schema=schema,
        entries=sum(book.seq for book in books),
        bytes=copy.stat().st_size,
        sha256=_hash(copy),
        secret_key=secret_key,
        books=books,
    )


def _read(path: Path) -> tuple[tuple[BookHead, ...], str, str]:
    """Heads of the books, identity and schema of a ledger's file, which stays unchanged."""
    with closing(connect_to_look(path)) as opened:
        cursor: Any = opened.native.cursor()
        rows = cursor.execute("SELECT id, seq, head FROM books ORDER BY id").fetchall()
        secret = cursor.execute("SELECT secret FROM installation").fetchone()
        schema = cursor.execute("SELECT version_num FROM alembic_version").fetchone()
    if secret is None or schema is None:
        raise StoreUnavailable(f"{path} has no ledger in it yet.")
    return tuple(BookHead(*row) for row in rows), ledger_identity(secret[0]), schema[0]


# Checking


def read_manifest(folder: Path) -> Manifest:
    """Raises Invalid if this is no backup."""
    try:
        members: dict[str, Any] = json.loads((folder / MANIFEST).read_bytes())
        books = tuple(BookHead(**book) for book in members.pop("books"))
        manifest = Manifest(**members, books=books)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise Invalid(f"{folder} is not a backup: it has no readable {MANIFEST}.") from None
    if manifest.format != FORMAT:
        raise Invalid(f"{folder} is a backup of another program version: {FORMAT} is needed.")
    return manifest


def check(folder: Path) -> Manifest:
    """The manifest, if the ledger in the backup is the one that it describes."""
    manifest, copy = read_manifest(folder), folder / LEDGER
    try:
        if copy.stat().st_size != manifest.bytes or _hash(copy) != manifest.sha256:
            raise StoreUnavailable(f"{copy} is damaged or changed: its checksum is another.")
        books, identity, _ = _read(copy)
    except (OSError, apsw.Error):
        raise StoreUnavailable(f"{copy} cannot be read.") from None
    if (books, identity) != (manifest.books, manifest.ledger):
        raise StoreUnavailable(f"{folder / MANIFEST} describes another ledger than {copy}.")
    return manifest


# Putting back


def put_back(folder: Path, manifest: Manifest, ledger: Path) -> Path | None:
    """Replace the ledger by the backup. Returns where the replaced ledger is kept.

    At every instant a ledger is at its path. A missing one would be made anew, with nothing spent.
    """
    ledger.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    incoming = ledger.with_name(f"{ledger.name}.incoming-{secret_text(6)}")
    try:
        copy_file(folder / LEDGER, incoming)
        if _hash(incoming) != manifest.sha256:
            raise StoreUnavailable(f"{folder / LEDGER} changed while it was copied.")
        with FileLock(ledger.with_name(f"{ledger.name}.lock")).held():
            kept = _keep(ledger)
            incoming.rename(ledger)
            _flush(ledger.parent)
    finally:
        incoming.unlink(missing_ok=True)
    return kept


def _keep(ledger: Path) -> Path | None:
    """Give the present ledger a second name, in one file if it can be read."""
    suffix = f".replaced-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secret_text(3)}"
    if ledger.exists():
        _close_log(ledger)
    for side in ("-wal", "-shm"):  # left by a ledger that cannot be read, or is gone
        with suppress(FileNotFoundError):
            beside = ledger.with_name(f"{ledger.name}{side}")
            beside.rename(beside.with_name(f"{ledger.name}{suffix}{side}"))
    if not ledger.exists():
        return None
    kept = ledger.with_name(f"{ledger.name}{suffix}")
    os.link(ledger, kept)
    return kept


def _close_log(ledger: Path) -> None:
    """Bring the log into the ledger's file. This fails while anybody has the ledger open."""
    try:
        with closing(apsw.Connection(str(ledger), flags=apsw.SQLITE_OPEN_READWRITE)) as opened:
            mode = opened.execute("PRAGMA journal_mode = DELETE").fetchone()
    except (apsw.BusyError, apsw.LockedError):
        raise StoreUnavailable(HELD) from None
    except apsw.Error:
        return  # damaged: its files are kept as they are
    if mode != ("delete",):
        raise StoreUnavailable(HELD)


def present(ledger: Path) -> int | None:
    """Number of entries of the ledger that is there now; None if there is none or it is damaged."""
    try:
        return sum(book.seq for book in _read(ledger)[0]) if ledger.exists() else None
    except Exception:  # noqa: BLE001  # a restore is for exactly this
        return None


# Files


def copy_file(source: Path, target: Path) -> None:
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with source.open("rb") as read, os.fdopen(descriptor, "wb") as written:
        shutil.copyfileobj(read, written, CHUNK)
        written.flush()
        os.fsync(written.fileno())


def _write(path: Path, content: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as written:
        written.write(content)
        written.flush()
        os.fsync(written.fileno())


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
