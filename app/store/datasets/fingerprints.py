"""Find the book of data that was registered before under any name, by keyed fingerprints."""

import json

from sqlalchemy import Connection, insert, select

from app.data.card import Card, Dataset
from app.data.inspection import EpochInspection, Inspection
from app.errors import Conflict
from app.names import new_id
from app.store import tables
from app.store.administration import Change
from app.store.datasets.keyed_hashes import marked
from app.store.datasets.shared_cells import cells_mark, must_agree_on_cells, must_hold_the_same_rows


def marks_of(change: Change, inspection: Inspection) -> list[str]:
    places = (f"place {each}" for each in (inspection.place, *inspection.parts))
    return marked(change, f"content {inspection.content}", *places)


def book_of(change: Change, actor: str, dataset: Dataset, inspection: Inspection) -> str:
    """The book of these rows or their location, or a new one.

    From now on both the rows and the location lead to this book.
    """
    connection, known = change.connection, tables.fingerprints
    marks = marks_of(change, inspection)
    rows = _books(connection, marks)
    if len(rows) > 1:
        raise Conflict("This file's path and its rows belong to two different datasets' books.")
    if rows:
        (book_id,) = rows
        _must_agree(connection, book_id, dataset)
        must_hold_the_same_rows(change, book_id, dataset, inspection.celled)
        _must_have_the_seed(connection, book_id, dataset)
    else:
        book_id = new_id("b")
        change.open_book(book_id, actor)
    if inspection.celled is not None:
        marks += marked(change, cells_mark(dataset.id, inspection.celled))
    for mark in marks:
        if not connection.execute(
            select(known.c.fingerprint).where(known.c.fingerprint == mark)
        ).first():
            connection.execute(insert(known).values(fingerprint=mark, book_id=book_id))
            change.written.marks.setdefault(book_id, set()).add(mark)
    return book_id


def known_seed(change: Change, inspection: Inspection) -> str | None:
    """Seed of the book that a registration would join."""
    books = _books(change.connection, marks_of(change, inspection))
    return _seed_of(change.connection, *books) if len(books) == 1 else None


def _books(connection: Connection, marks: list[str]) -> list[str]:
    known = tables.fingerprints
    statement = select(known.c.book_id).where(known.c.fingerprint.in_(marks)).distinct()
    return [row.book_id for row in connection.execute(statement)]


def _seed_of(connection: Connection, book_id: str) -> str | None:
    """Seed of the book's first name, which all its names have."""
    datasets, versions = tables.datasets, tables.versions
    row = connection.execute(
        select(versions.c.seed)
        .join(datasets, datasets.c.version_id == versions.c.id)
        .where(datasets.c.book_id == book_id)
        .order_by(datasets.c.created_at, datasets.c.id)
        .limit(1)
    ).first()
    return None if row is None else row.seed


def _must_have_the_seed(connection: Connection, book_id: str, dataset: Dataset) -> None:
    """Require the book's seed, so that all its names select the same rows of a person.

    The seed differs only if the book's first name was stored after this name's rows were selected.
    """
    if _seed_of(connection, book_id) not in (None, dataset.version.seed):
        raise Conflict("The same data were registered under another name meanwhile; try again.")


def _must_agree(connection: Connection, book_id: str, dataset: Dataset) -> None:
    """Require the same person and relation in a book: losses under two of them do not add up."""
    card = dataset.card
    rows = connection.execute(
        select(tables.datasets.c.card).where(tables.datasets.c.book_id == book_id)
    ).all()
    for row in rows:
        other = Card.model_validate_json(row.card)
        if (other.person, other.neighbours) != (card.person, card.neighbours):
            raise Conflict(
                "These data are registered under another name with a different person or "
                "neighbouring relation; their losses could not be added up."
            )
        must_agree_on_cells(card, other)


def held_marks(connection: Connection, dataset: Dataset) -> set[str]:
    """Fingerprints of everything a dataset holds: every version, source first, and every epoch."""
    versions = tables.versions
    statement = select(versions.c.fingerprint).where(versions.c.dataset_id == dataset.id)
    marks = {row.fingerprint for row in connection.execute(statement)}
    known = connection.execute(
        select(versions.c.appended).where(versions.c.id == dataset.version.id)
    ).scalar_one()
    return marks | {epoch["mark"] for epoch in json.loads(known)}


def marks_of_epoch(
    change: Change, before: Dataset, inspection: EpochInspection
) -> tuple[str, str, list[str]]:
    """Marks of all rows together and of an epoch's content, and the marks that are new.

    Refuse an epoch whose file or rows the ledger knows already.
    """
    known = tables.fingerprints
    together, content = marked(
        change, f"content {inspection.together}", f"content {inspection.content}"
    )
    places = marked(change, *(f"place {path}" for path in (inspection.place, *inspection.parts)))
    # All empty files have the same content, so it identifies no dataset.
    marks = [together, *places] if inspection.empty else [together, content, *places]
    known_books: dict[str, str] = {
        row.fingerprint: row.book_id
        for row in change.connection.execute(select(known).where(known.c.fingerprint.in_(marks)))
    }
    if set(places) & set(known_books):
        raise Conflict("This file is registered already, as a dataset's source or epoch.")
    if set(known_books.values()) - {before.book_id}:
        raise Conflict("The loss of these rows is recorded in another dataset's book.")
    again = {content} & set(marks) & set(known_books)
    if again & held_marks(change.connection, before):
        raise Conflict(
            "These rows are in the dataset already: its source, an epoch, or several of "
            "them together have the same rows. Each person in them would count twice."
        )
    return together, content, [*(set(marks) - set(known_books))]
