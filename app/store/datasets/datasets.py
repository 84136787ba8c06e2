"""Registered datasets, their versions, and the books that they share."""

import json
from dataclasses import asdict, replace

from sqlalchemy import insert, select, update

from app.data.card import Dataset
from app.data.inspection import EpochInspection, Inspection, PrivateFiles
from app.errors import Conflict
from app.ledger.chain import canonical
from app.names import folded
from app.store import tables
from app.store.administration import Administration, Change, store_errors
from app.store.connect import Database
from app.store.datasets.dataset_rows import (
    dataset_from,
    find_dataset,
    granted_to,
    repeated_registration,
    select_datasets,
)
from app.store.datasets.fingerprints import book_of, known_seed, marks_of, marks_of_epoch
from app.store.datasets.shared_cells import has_whole_rows, must_be_the_only_name_with_cells
from app.store.row_hashes import ledger_key, version_hash

# Prefix of a stored reply that holds a dataset's id. The name alone would not do: another dataset
# may have it by the time the request is repeated. Names contain no slash.


class SqlDatasets:
    def __init__(self, database: Database, administration: Administration) -> None:
        self._database = database
        self._administration = administration

    # Reading

    def find(self, name: str, holders: tuple[str, ...] | None = None) -> Dataset:
        with store_errors(), self._database.reading() as connection:
            return find_dataset(connection, name, holders)

    def all(self, *, holders: tuple[str, ...] | None, after: str, limit: int) -> list[Dataset]:
        """All datasets, or those on which one of the holders has a budget."""
        statement = granted_to(select_datasets().where(tables.datasets.c.id > after), holders)
        with store_errors(), self._database.reading() as connection:
            rows = connection.execute(statement.order_by(tables.datasets.c.id).limit(limit)).all()
        return [dataset_from(row) for row in rows]

    def private_files(self) -> PrivateFiles:
        datasets, versions = tables.datasets, tables.versions
        with store_errors(), self._database.reading() as connection:
            rows = connection.execute(
                select(datasets.c.source, versions.c.digest, versions.c.appended).join(
                    versions, versions.c.dataset_id == datasets.c.id
                )
            ).all()
        paths: set[str] = set()
        digests: set[str] = set()
        for row in rows:
            source, epochs = json.loads(row.source), json.loads(row.appended)
            digests |= {row.digest, *(epoch["digest"] for epoch in epochs)}
            if source["engine"] != "postgresql":  # whose path is the name of a table
                paths |= {source["path"], *(epoch["path"] for epoch in epochs)}
        return PrivateFiles(tuple(sorted(paths)), frozenset(digests))

    def fingerprint(self, dataset: Dataset) -> str:
        with store_errors(), self._database.reading() as connection:
            return str(
                connection.execute(
                    select(tables.versions.c.fingerprint).where(
                        tables.versions.c.id == dataset.version.id
                    )
                ).scalar_one()
            )

    def holds(self, dataset: Dataset, inspection: Inspection) -> bool:
        with self._administration.change(catalogue=False) as change:
            marks = marks_of(change, inspection)
        return self.fingerprint(dataset) == marks[0]

    def holds_whole_rows(self, dataset: Dataset, inspection: Inspection) -> bool:
        with self._administration.change(catalogue=False) as change:
            return has_whole_rows(change, dataset.id, inspection.celled)

    def known_seed(self, inspection: Inspection) -> str | None:
        with self._administration.change(catalogue=False) as change:
            return known_seed(change, inspection)

    # Changing

    def remembered(self, request: str | None, body: str) -> Dataset | None:
        with self._administration.change(catalogue=False) as change:
            reply = change.remembered(request, body)
            return None if reply is None else repeated_registration(change.connection, reply)

    def register(
        self,
        actor: str,
        dataset: Dataset,
        inspection: Inspection,
        *,
        reason: str | None,
        request: str | None,
        body: str,
    ) -> Dataset:
        """Store a new dataset. Rows or a location that are known lead to their existing book."""
        with self._administration.change() as change:
            if (earlier := change.remembered(request, body)) is not None:
                return repeated_registration(change.connection, earlier)
            change.must_be_open()
            table = tables.datasets
            taken = change.connection.execute(
                select(table.c.id).where(table.c.folded == folded(dataset.name))
            ).first()
            if taken is not None:
                raise Conflict("A dataset of this name is registered.")
            marks = marks_of(change, inspection)
            book_id = book_of(change, actor, dataset, inspection)
            if dataset.card.cells is not None:
                books = tables.books
                change.connection.execute(
                    update(books).where(books.c.id == book_id).values(celled=1)
                )
            celled = dataset.card.cells is not None
            stored = replace(dataset, book_id=book_id, created_at=change.now, celled=celled)
            hashed = self._insert(change, stored, marks[0])
            after = {
                "card": json.loads(stored.card.model_dump_json()),
                "source": asdict(stored.source),
                "description": stored.description,
                "version": stored.version.id,
                "version_hash": hashed,
                "fingerprint": marks[0],
                "fingerprints": change.written.new_marks(stored.book_id),
            }
            entry = {"dataset": stored.name, "before": None, "after": after, "reason": reason}
            change.append(stored.book_id, kind="dataset_registered", actor=actor, body=entry)
            change.remember(request, body, stored.id)
            return stored

    def append(
        self,
        actor: str,
        before: Dataset,
        after: Dataset,
        inspection: EpochInspection,
        *,
        reason: str | None,
    ) -> Dataset:
        """Store a version with an appended epoch; the loss stays with the book.

        From now on the new rows, and all rows together, lead to this book under any name.
        """
        with self._administration.change() as change:
            if find_dataset(change.connection, before.name).version.id != before.version.id:
                raise Conflict("Another epoch was appended meanwhile; read the dataset again.")
            must_be_the_only_name_with_cells(change.connection, before)
            change.must_be_open()
            together, content, new_marks = marks_of_epoch(change, before, inspection)
            *earlier, newest = after.version.appended
            epochs = (*earlier, replace(newest, mark="" if inspection.empty else content))
            after = replace(after, version=replace(after.version, appended=epochs))
            hashed = self._put_version(change, after, new_marks, together)
            version = after.version
            change.append(
                before.book_id,
                kind="epoch_appended",
                actor=actor,
                body={
                    "dataset": before.name,
                    "before": {"version": before.version.id, "epoch": before.version.number},
                    "after": {
                        "version": version.id,
                        "version_hash": hashed,
                        "epoch": version.number,
                        "path": version.appended[-1].path,
                        "fingerprint": together,
                        "fingerprints": change.written.new_marks(before.book_id),
                    },
                    "reason": reason,
                },
            )
            return after

    def refresh(
        self,
        actor: str,
        before: Dataset,
        after: Dataset,
        inspection: Inspection,
        *,
        reason: str | None,
    ) -> Dataset:
        """Store a new version of changed rows; the loss stays with the book."""
        with self._administration.change() as change:
            if find_dataset(change.connection, before.name).version.id != before.version.id:
                raise Conflict("Another version was declared meanwhile; read the dataset again.")
            change.must_be_open()
            marks = marks_of(change, inspection)
            known = tables.fingerprints
            rows = change.connection.execute(select(known).where(known.c.fingerprint.in_(marks)))
            known_books = {row.fingerprint: row.book_id for row in rows}
            if set(known_books.values()) - {before.book_id}:
                raise Conflict("The loss of these rows is recorded in another dataset's book.")
            new_marks = [*(set(marks) - set(known_books))]
            hashed = self._put_version(change, after, new_marks, marks[0])
            change.append(
                before.book_id,
                kind="version_declared",
                actor=actor,
                body={
                    "dataset": before.name,
                    "before": {"version": before.version.id},
                    "after": {
                        "version": after.version.id,
                        "version_hash": hashed,
                        "fingerprint": marks[0],
                        "fingerprints": change.written.new_marks(before.book_id),
                    },
                    "reason": reason,
                },
            )
            return after

    def _put_version(
        self, change: Change, after: Dataset, new_marks: list[str], fingerprint: str
    ) -> str:
        """Make this version the current one, and store its fingerprints; returns its hash."""
        for mark in sorted(new_marks):
            row = {"fingerprint": mark, "book_id": after.book_id}
            change.written.marks.setdefault(after.book_id, set()).add(mark)
            change.connection.execute(insert(tables.fingerprints).values(row))
        table = tables.datasets
        change.connection.execute(
            update(table).where(table.c.id == after.id).values(version_id=after.version.id)
        )
        return self._insert_version(change, after, fingerprint)

    def _insert(self, change: Change, dataset: Dataset, fingerprint: str) -> str:
        change.connection.execute(
            insert(tables.datasets).values(
                id=dataset.id,
                name=dataset.name,
                folded=folded(dataset.name),
                description=dataset.description,
                book_id=dataset.book_id,
                card=dataset.card.model_dump_json(),
                source=canonical(asdict(dataset.source)),
                version_id=dataset.version.id,
                closed=0,
                created_at=change.now,
            )
        )
        return self._insert_version(change, dataset, fingerprint)

    def _insert_version(self, change: Change, dataset: Dataset, fingerprint: str) -> str:
        version = dataset.version
        row = {
            "id": version.id,
            "dataset_id": dataset.id,
            "number": version.number,
            "digest": version.digest,
            "fingerprint": fingerprint,
            "seed": version.seed,
            "created_at": change.now,
            "appended": canonical([asdict(epoch) for epoch in version.appended]),
        }
        change.connection.execute(insert(tables.versions).values(row))
        return version_hash(ledger_key(change.connection), row)

    def alter(
        self,
        actor: str,
        name: str,
        *,
        description: str | None,
        closed: bool | None,
        reason: str | None,
    ) -> Dataset:
        with self._administration.change() as change:
            before = find_dataset(change.connection, name)
            after = replace(
                before,
                description=before.description if description is None else description,
                closed=before.closed if closed is None else closed,
            )
            _put_change(change, actor, before, after, reason=reason)
            return after


def close_dataset(change: Change, actor: str, dataset: Dataset, *, reason: str | None) -> None:
    _put_change(change, actor, dataset, replace(dataset, closed=True), reason=reason)


def _put_change(
    change: Change, actor: str, before: Dataset, after: Dataset, *, reason: str | None
) -> None:
    table = tables.datasets
    change.connection.execute(
        update(table)
        .where(table.c.id == before.id)
        .values(description=after.description, closed=int(after.closed))
    )
    change.append(
        before.book_id,
        kind="dataset_changed",
        actor=actor,
        body={
            "dataset": before.name,
            "before": {"description": before.description, "closed": before.closed},
            "after": {"description": after.description, "closed": after.closed},
            "reason": reason,
        },
    )
