"""Whether the ledger may be charged: not while it is behind its anchors.

The evidence is entered in the system's book. So every server stops, and any server can book the
difference, even one with other anchors or none. `installation.standing` counts how often charging
stopped or resumed. Every change of it raises the catalogue number, and every charge is checked
against that number.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select, update

from app.ledger.anchor_comparison import AnchorComparison
from app.ledger.chain import SYSTEM_BOOK
from app.store import tables
from app.store.account_rows import account_from, read_cells
from app.store.administration import Administration, Change, store_errors
from app.store.anchors.files import AnchorFiles, ledger_identity
from app.store.anchors.lines import Anchor, AnchoredTerms, BookEnd, book_end, marks_line, terms_line
from app.store.connect import Database
from app.store.rollback.anchor_check import (
    STOPPED,
    LostBook,
    Missing,
    find_missing,
    lost_spends,
    still_true,
    stops,
)
from app.store.writer.statements import is_stopped

# Servers that kept running while the ledger was restored have cached people and datasets under
# catalogue numbers that would come again. This step skips every number that they can have seen.
CATALOGUE_STEP = 1 << 20
REASON = "the ledger is behind its anchors"


class SqlStanding:
    def __init__(self, database: Database, administration: Administration) -> None:
        self._database = database
        self._administration = administration

    # Reading

    def compare(self) -> AnchorComparison:
        """Compare all anchors with the ledger, and stop charging if it lacks entries they saw.

        Anchors are read before the ledger: everything in them was committed by then.
        """
        files = self._database.anchors
        anchors = [] if files is None else files.read()
        with store_errors(), self._database.reading() as connection:
            missing = find_missing(connection, anchors)
            new_evidence = evidence(connection, anchors, missing) if missing else None
            row_says = is_stopped(read_standing(connection))
            reported = stops(connection)[1]
        waiting = reported + ([] if new_evidence is None else [new_evidence])
        if new_evidence is not None:
            self._stop(new_evidence)
        elif reported and not row_says:  # somebody has edited the row
            self._stop_again()
        return AnchorComparison(
            stopped=row_says or bool(waiting),
            altered=row_says != bool(reported),
            points=sum(len(anchor.points) for anchor in anchors),
            books=tuple(sorted({lost["book"] for stop in waiting for lost in stop["books"]})),
            answers=sum(len(stop["answers"]) for stop in waiting),
            other_ledgers=0 if files is None else len(files.others()),
        )

    def _stop(self, new_evidence: dict[str, Any]) -> None:
        with self._administration.change() as change:
            standing = read_standing(change.connection)
            if not is_stopped(standing):
                set_standing(change, standing + 1)
            body = {"before": {"standing": standing}, "after": {"standing": standing | 1}}
            change.append(
                SYSTEM_BOOK,
                kind=STOPPED,
                actor="bursar",
                body={**body, **new_evidence, "reason": REASON},
            )

    def _stop_again(self) -> None:
        """Stop charging, as the entries say. They stay as they are."""
        with self._administration.change() as change:
            standing = read_standing(change.connection)
            if not is_stopped(standing):
                set_standing(change, standing + 1)

    # Starting

    def begin(self) -> None:
        """Anchor the whole ledger, and replace the files of ended processes.

        Does nothing if the ledger is behind one of its anchors.
        """
        files = self._database.anchors
        if files is None:
            return
        anchors = files.read()
        with store_errors(), self._database.reading() as connection:
            standing = read_standing(connection)
            is_behind = is_stopped(standing) or stops(connection)[1]
            if is_behind or find_missing(connection, anchors):
                return
            anchors = still_true(connection, anchors)
            ends, terms_and_marks = _whole_ledger(connection)
        files.replace_ended(standing, anchors, ends, terms_and_marks)

    def join(self) -> None:
        """Anchor the current end of every book when a process starts to serve.

        So its own file shows the entries that existed before its first charge.
        """
        files = self._database.anchors
        if files is None:
            return
        with store_errors(), self._database.reading() as connection:
            rows = connection.execute(select(tables.books)).all()
        files.append([BookEnd(row.id, row.seq, row.head) for row in rows])


def open_anchors(database: Database, folders: Iterable[Path]) -> AnchorFiles | None:
    """The anchors of this ledger, or None if the ledger is not installed yet.

    Raises OSError if a folder cannot be written.
    """
    with store_errors(), database.reading() as connection:
        secret = connection.execute(select(tables.installation.c.secret)).scalar()
    if secret is None:
        return None
    files = AnchorFiles(folders, ledger_identity(secret))
    files.make_folders()
    return files


def read_standing(connection: Connection) -> int:
    return int(connection.execute(select(tables.installation.c.standing)).scalar_one())


def set_standing(change: Change, standing: int) -> None:
    table = tables.installation
    catalogue = table.c.catalogue + CATALOGUE_STEP
    change.connection.execute(update(table).values(standing=standing, catalogue=catalogue))


def _whole_ledger(connection: Connection) -> tuple[list[BookEnd], list[str]]:
    cells = read_cells(connection, None)
    by_book: dict[str, list[Any]] = {}
    for row in connection.execute(select(tables.accounts)).all():
        by_book.setdefault(row.book_id, []).append(account_from(row, cells.get(row.id, {})))
    ends = [
        book_end(row.id, row.seq, row.head, by_book.get(row.id, []))
        for row in connection.execute(select(tables.books)).all()
    ]
    marks: dict[str, set[str]] = {}
    for row in connection.execute(select(tables.fingerprints)).all():
        marks.setdefault(row.book_id, set()).add(row.fingerprint)
    grants = [terms_line(account) for accounts in by_book.values() for account in accounts]
    return ends, [*grants, *(marks_line(book, book_marks) for book, book_marks in marks.items())]


# Evidence


def evidence(connection: Connection, anchors: list[Anchor], missing: Missing) -> dict[str, Any]:
    """Everything that any server needs to book the difference."""
    return {
        "books": [_lost_book(connection, anchors, lost) for lost in missing.books.values()],
        "points": [
            [lost.book, point.seq, point.head]
            for lost in missing.books.values()
            for point in lost.points
        ],
        "answers": [list(each) for each in missing.stamps],
    }


def _lost_book(connection: Connection, anchors: list[Anchor], lost: LostBook) -> dict[str, Any]:
    books, known = tables.books, tables.fingerprints
    row = connection.execute(select(books).where(books.c.id == lost.book)).one_or_none()
    newest = max(lost.points, key=lambda point: point.seq)
    seen = {mark for anchor in anchors for mark in anchor.marks.get(lost.book, ())}
    stored = connection.execute(select(known.c.fingerprint).where(known.c.book_id == lost.book))
    accounts = [
        {
            **_terms(anchors, id_of_account),
            "account": id_of_account,
            "currency": spent.currency,
            "lost": spent.common,
            "cells": [[cell, *spend] for cell, spend in sorted(spent.cells.items())],
        }
        for id_of_account, spent in sorted(lost_spends(connection, lost).items())
    ]
    return {
        "book": lost.book,
        "anchored": {"seq": newest.seq, "head": newest.head},
        "ledger": None if row is None else {"seq": row.seq, "head": row.head},
        "common": lost.common,
        "accounts": accounts,
        "fingerprints": sorted(seen - {each.fingerprint for each in stored}),
    }


def _terms(anchors: list[Anchor], id_of_account: str) -> dict[str, Any]:
    """The last granted terms that an anchor saw."""
    granted: AnchoredTerms | None = None
    for anchor in anchors:  # sorted by name, hence by the start of the process
        granted = anchor.terms.get(id_of_account, granted)
    holder = id_of_account.partition("/")[2]
    if granted is None:
        # It is unknown whether persons may move between cells; assume that they may.
        return {"holder": holder, "shown": holder, "terms": None, "pairs": True}
    terms = {"currency": granted.currency, "terms": json.loads(granted.terms)}
    return {"holder": holder, "shown": granted.shown, "terms": terms, "pairs": granted.pairs}
