"""Which prepared versions nobody needs any more.

A version that was current until it was followed by another is needed by what was charged for it and
is not settled: no charge is taken for it any more, because one that was planned under the earlier
catalogue number is refused. On PostgreSQL a charge may read that number before the change commits
and commit after it: there a version has to be followed for longer than any transaction takes.
A version that this ledger does not know is none of its business: it may belong to a registration
that is not stored yet, or to another ledger. Versions of a withdrawn dataset are listed apart, and
nobody needs them: nothing was ever charged for one.
"""

from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, func, select, text

from app.store import tables
from app.store.administration import store_errors
from app.store.connect import Database

DAY_MS = 86_400_000  # more than the clocks of two servers are apart
FOLLOWED_MIN_US = 60_000_000  # where charges and changes are not strictly one after the other
CHUNK = 500
UNSETTLED = "charged"


class OldVersions:
    def __init__(self, database: Database) -> None:
        self._database = database

    def unneeded(self, present: Collection[str]) -> list[str]:
        """Of these versions those that may be deleted."""
        listed = sorted(present)
        found: list[str] = []
        with store_errors(), self._database.reading() as connection:
            until = self._followed_until(connection)
            for start in range(0, len(listed), CHUNK):
                some = listed[start : start + CHUNK]
                found += _withdrawn(connection, some)
                old = _old(connection, some)
                found += [
                    row.id
                    for row in old
                    if row.followed_at is not None
                    and (until is None or row.followed_at <= until)
                    and not _is_needed(connection, row)
                ]
        return found

    def _followed_until(self, connection: Connection) -> int | None:
        if self._database.is_sqlite:  # one writer at a time, who reads the number first
            return None
        now = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
        return int(connection.execute(text(now)).scalar_one()) - FOLLOWED_MIN_US


def _withdrawn(connection: Connection, listed: list[str]) -> list[str]:
    withdrawn = tables.withdrawn_versions
    statement = select(withdrawn.c.id).where(withdrawn.c.id.in_(listed))
    return list(connection.execute(statement).scalars())


def _old(connection: Connection, listed: list[str]) -> list[Any]:
    """Known, and current of no dataset; with when they became so, and when they were followed."""
    versions, datasets = tables.versions, tables.datasets
    later = versions.alias("later")
    followed = (
        select(func.min(later.c.created_at))
        .where(
            later.c.dataset_id == versions.c.dataset_id,
            later.c.created_at > versions.c.created_at,
        )
        .scalar_subquery()
    )
    current = select(datasets.c.version_id)
    statement = select(versions.c.id, versions.c.created_at, followed.label("followed_at")).where(
        versions.c.id.in_(listed), versions.c.id.not_in(current)
    )
    return list(connection.execute(statement))


def _is_needed(connection: Connection, version: Any) -> bool:
    charges, asks = tables.charges, tables.asks
    # Identifiers sort by time, and charges may be many: only those of its time are looked at.
    charged = select(charges.c.id).where(
        charges.c.version_id == version.id,
        charges.c.state == UNSETTLED,
        charges.c.id >= _made_at(version.created_at // 1000 - DAY_MS),
        charges.c.id <= _made_at(version.followed_at // 1000 + DAY_MS),
    )
    asked = select(asks.c.id).where(asks.c.version_id == version.id, asks.c.state == UNSETTLED)
    return any(connection.execute(each.limit(1)).first() for each in (charged, asked))


def _made_at(moment_ms: int) -> str:
    return f"q_{max(0, moment_ms).to_bytes(6).hex()}"
