"""Search conditions for history and ledger, in the SQL of either database."""

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
    """Conditions for queries.

    `original`: the charge that a free repetition repeats. `now`: time at which the page is read, in
    microseconds.
    """
    conditions = []
    if search.kind is not None:
        conditions.append(_asked_by_kind(database, charges, original, search.kind))
    if search.status is not None:
        conditions.append(_asked_by_status(database, charges, original, search.status, now))
    if search.since is not None:
        conditions.append(charges.c.created_at >= search.since)
    return conditions


def entry_conditions(
    database: Database, entries: FromClause, search: Search
) -> list[ColumnElement[bool]]:
    conditions = []
    if search.holder is not None:
        conditions.append(_entry_of_holder(database, entries.c.text, search.holder))
    if search.kind is not None:
        conditions.append(entries.c.kind == search.kind)
    if search.since is not None:
        conditions.append(entries.c.at >= search.since)
    return conditions


def _asked_by_kind(
    database: Database, charges: FromClause, original: FromClause, kind: str
) -> ColumnElement[bool]:
    """Queries and stream openings of this kind; a free repetition has its original's text."""
    text = func.coalesce(
        func.nullif(original.c.question, ""), func.nullif(charges.c.question, ""), type_=Text()
    )
    return or_(
        member(database, text, "query", "kind") == kind,
        member(database, text, "stream", "kind") == kind,
    )


def _asked_by_status(
    database: Database, charges: FromClause, original: FromClause, status: str, now: int
) -> ColumnElement[bool]:
    """Queries with the status that the analyst sees.

    A query settled as of a later time-grid point still counts as running, so that a search reveals
    nothing before the grid does.
    """
    state, settled_at = charges.c.state, charges.c.settled_at
    visible = or_(settled_at.is_(None), settled_at <= now)
    if status == RUNNING:
        return or_(state == State.CHARGED.value, not_(visible))
    if status not in (WITHHELD, ANSWERED):
        return and_(visible, state == status)
    answer = func.coalesce(original.c.answer, charges.c.answer, type_=Text())
    return and_(
        visible,
        state == State.ANSWERED.value,
        member(database, answer, "status") == status,
    )


def _entry_of_holder(
    database: Database, text: ColumnElement[str], holder: str
) -> ColumnElement[bool]:
    """Entries that charge the holder's account, refund it, or grant it."""
    if database.is_sqlite:
        accounts = func.json_each(text, "$.body.accounts").table_valued("value")
        charged: ColumnElement[bool] = exists(
            select(accounts.c.value).where(accounts.c.value == holder)
        )
    else:
        charged = cast(text, JSONB)["body"]["accounts"].contains([holder])
    return or_(func.coalesce(charged, False), member(database, text, "body", "holder") == holder)


def member(database: Database, text: Any, *path: str) -> ColumnElement[Any]:
    """A member of a JSON text column."""
    if database.is_sqlite:
        return func.json_extract(text, "$." + ".".join(path))
    member: Any = cast(text, JSONB)
    for name in path:
        member = member[name]
    return member.astext  # type: ignore[no-any-return]  # an element of any JSON
