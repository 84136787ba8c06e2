"""Conditions by which history and ledger are searched, in the words of either database."""

from typing import Any

from sqlalchemy import ColumnElement, FromClause, Text, and_, cast, exists, func, not_, or_, select
from sqlalchemy.dialects.postgresql import JSONB

from app.ledger.orders import State
from app.ledger.records import Search
from app.store.connect import Database

RUNNING, WITHHELD, ANSWERED = "running", "withheld", "answered"


def asked_conditions(
    database: Database, charges: FromClause, original: FromClause, search: Search, now: int
) -> list[ColumnElement[bool]]:
    """Of questions; `original` is what a free repetition repeats, `now` when the page is read."""
    found = []
    if search.kind is not None:
        found.append(_asked_by_kind(database, charges, original, search.kind))
    if search.status is not None:
        found.append(_asked_by_status(database, charges, original, search.status, now))
    if search.since is not None:
        found.append(charges.c.created_at >= search.since)
    return found


def entry_conditions(
    database: Database, entries: FromClause, search: Search
) -> list[ColumnElement[bool]]:
    found = []
    if search.holder is not None:
        found.append(_entry_of_holder(database, entries.c.text, search.holder))
    if search.kind is not None:
        found.append(entries.c.kind == search.kind)
    if search.since is not None:
        found.append(entries.c.at >= search.since)
    return found


def _asked_by_kind(
    database: Database, charges: FromClause, original: FromClause, kind: str
) -> ColumnElement[bool]:
    """Questions and openings of streams of this kind; a free repetition has its original's text."""
    text = func.coalesce(
        func.nullif(original.c.question, ""), func.nullif(charges.c.question, ""), type_=Text()
    )
    return or_(
        _member(database, text, "query", "kind") == kind,
        _member(database, text, "stream", "kind") == kind,
    )


def _asked_by_status(
    database: Database, charges: FromClause, original: FromClause, status: str, now: int
) -> ColumnElement[bool]:
    """As the status is told: what is settled as of a later point of the time grid still runs, so
    that a search tells nothing sooner than the grid does."""
    state, settled_at = charges.c.state, charges.c.settled_at
    told = or_(settled_at.is_(None), settled_at <= now)
    if status == RUNNING:
        return or_(state == State.CHARGED.value, not_(told))
    if status not in (WITHHELD, ANSWERED):
        return and_(told, state == status)
    answer = func.coalesce(original.c.answer, charges.c.answer, type_=Text())
    return and_(
        told,
        state == State.ANSWERED.value,
        _member(database, answer, "status") == status,
    )


def _entry_of_holder(
    database: Database, text: ColumnElement[str], holder: str
) -> ColumnElement[bool]:
    """Entries that charged the holder's account, gave back to it, or granted it."""
    if database.is_sqlite:
        accounts = func.json_each(text, "$.body.accounts").table_valued("value")
        charged: ColumnElement[bool] = exists(
            select(accounts.c.value).where(accounts.c.value == holder)
        )
    else:
        charged = cast(text, JSONB)["body"]["accounts"].contains([holder])
    return or_(func.coalesce(charged, False), _member(database, text, "body", "holder") == holder)


def _member(database: Database, text: Any, *path: str) -> ColumnElement[Any]:
    """A member of JSON that is stored as text."""
    if database.is_sqlite:
        return func.json_extract(text, "$." + ".".join(path))
    found: Any = cast(text, JSONB)
    for name in path:
        found = found[name]
    return found.astext  # type: ignore[no-any-return]  # an element of any JSON
