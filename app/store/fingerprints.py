"""By what the same data are known again, under whatever name, and the book that they share."""

import hashlib
import hmac
import json

from sqlalchemy import Connection, insert, select

from app.columns import EpochColumn
from app.datasets import Card, Dataset
from app.errors import Conflict
from app.expressions import columns_of
from app.interfaces import Inspection
from app.names import new_id
from app.store import tables
from app.store.administration import Change


def marks_of(change: Change, inspection: Inspection) -> list[str]:
    contents = (f"content {each}" for each in inspection.contents)
    places = (f"place {each}" for each in (inspection.place, *inspection.parts))
    return marked(change, *contents, *places)


def marked(change: Change, *texts: str) -> list[str]:
    """Keyed, so that nobody who sees a fingerprint can try guesses of the data against it."""
    secret: str = change.connection.execute(select(tables.installation.c.secret)).scalar_one()
    return [hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest() for text in texts]


def book_of(change: Change, actor: str, card: Card, marks: list[str]) -> str:
    known = tables.fingerprints
    rows = change.connection.execute(
        select(known.c.book_id).where(known.c.fingerprint.in_(marks)).distinct()
    ).all()
    if len(rows) > 1:
        raise Conflict("This file's place and its rows belong to two different datasets' loss.")
    if rows:
        book_id: str = rows[0].book_id
        _must_agree(change, book_id, card)
    else:
        book_id = new_id("b")
        change.open_book(book_id, actor)
    for mark in marks:
        if not change.connection.execute(
            select(known.c.fingerprint).where(known.c.fingerprint == mark)
        ).first():
            change.connection.execute(insert(known).values(fingerprint=mark, book_id=book_id))
            change.written.marks.setdefault(book_id, set()).add(mark)
    return book_id


def _must_agree(change: Change, book_id: str, card: Card) -> None:
    """One book, one unit and relation: losses under two of them cannot be added up."""
    rows = change.connection.execute(
        select(tables.datasets.c.card).where(tables.datasets.c.book_id == book_id)
    ).all()
    for row in rows:
        other = Card.model_validate_json(row.card)
        if (other.person, other.neighbours) != (card.person, card.neighbours):
            raise Conflict(
                "These data are registered under another name with another person or "
                "neighbouring relation; their losses could not be added up."
            )
        if _by_epochs(card) and _by_epochs(other):
            raise Conflict(
                "These data are registered under another name with cells by epoch. Rows could "
                "come in one epoch of the one and in another of the other, and would bear the "
                "loss of both. Declare no cells: what is asked is charged to all."
            )
        if card.cells and other.cells and _partition(card) != _partition(other):
            raise Conflict(
                "These data are registered under another name with other cells; a loss on one "
                "partition says nothing about the other. Declare the same cells of the same "
                "column, or none."
            )


def held_marks(connection: Connection, dataset: Dataset, otherwise: str) -> set[str]:
    """The marks of what a dataset holds: of every version, the source being the first, and of every
    epoch; `otherwise` stands for an epoch of which it is not known."""
    versions = tables.versions
    statement = select(versions.c.fingerprint).where(versions.c.dataset_id == dataset.id)
    marks = {row.fingerprint for row in connection.execute(statement)}
    known = connection.execute(
        select(versions.c.appended).where(versions.c.id == dataset.version.id)
    ).scalar_one()
    return marks | {each.get("mark", otherwise) for each in json.loads(known)}


def _by_epochs(card: Card) -> bool:
    return card.cells is not None and isinstance(card.column(card.cells.column), EpochColumn)


def _partition(card: Card) -> tuple[object, ...]:
    """Who is in which cell: the edges, and the column's own declaration, by which its values are
    ordered and clamped; of a derived one also the declarations of what it is made of."""
    assert card.cells is not None
    column = card.column(card.cells.column)
    assert column is not None
    names = sorted(set() if column.derived is None else columns_of(column.derived))
    deciding = [column, *(each for name in names if (each := card.column(name)) is not None)]
    return card.cells, *(each.model_copy(update={"description": None}) for each in deciding)
