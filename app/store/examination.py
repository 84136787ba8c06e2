"""A look at a ledger that changes nothing: for `bursard doctor`, and after a restore."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import func, select, text

from app.store import tables
from app.store.administration import store_errors
from app.store.anchors.files import AnchorFiles, ledger_identity
from app.store.connect import Database
from app.store.rollback.anchor_check import find_missing
from app.store.rollback.charging_state import read_standing
from app.store.writer.statements import is_stopped

WAL_HEADER = b"\x02\x02"  # bytes 18 and 19 of a SQLite file that has a write-ahead log


@dataclass(frozen=True, slots=True)
class Examined:
    """Facts about a ledger with a current schema; times are microseconds since 1970."""

    identity: str | None  # None if the ledger is not installed
    newest_at: int  # time of the newest entry
    clock_ahead: int  # how far the database's clock is ahead of this machine's
    sealed_streams: int  # open streams whose secret needs the key
    stopped: bool  # charging is stopped
    anchor_files: int
    books_behind: tuple[str, ...]  # books that lack entries which an anchor has seen
    answers_behind: int

    @property
    def behind(self) -> bool:
        return self.stopped or bool(self.books_behind) or self.answers_behind > 0


def examine(database: Database, folders: Iterable[Path]) -> Examined:
    """Compare the ledger with the anchors in these folders, without stopping its charges."""
    streams = tables.streams
    with store_errors(), database.reading() as connection:
        secret = connection.execute(select(tables.installation.c.secret)).scalar()
    identity = None if secret is None else ledger_identity(secret)
    # Anchors are read before the ledger: everything in them was committed by then.
    anchors = [] if identity is None else AnchorFiles(folders, identity).read()
    with store_errors(), database.reading() as connection:
        missing = find_missing(connection, anchors)
        newest = connection.execute(select(func.max(tables.books.c.last_at))).scalar()
        sealed = connection.execute(
            select(func.count())
            .select_from(streams)
            .where(streams.c.secret.is_not(None), streams.c.closed_at.is_(None))
        ).scalar_one()
        clock_ahead = 0
        if not database.is_sqlite:
            clock = text("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
            clock_ahead = int(connection.execute(clock).scalar_one()) - time.time_ns() // 1000
        return Examined(
            identity=identity,
            newest_at=newest or 0,
            clock_ahead=clock_ahead,
            sealed_streams=sealed,
            stopped=identity is not None and is_stopped(read_standing(connection)),
            anchor_files=len(anchors),
            books_behind=tuple(sorted(missing.books)),
            answers_behind=len(missing.stamps),
        )


def has_write_ahead_log(path: Path) -> bool:
    """Whether a SQLite file is set to use a write-ahead log."""
    with path.open("rb") as file:
        return file.read(20)[18:] == WAL_HEADER
