"""Find prepared versions that may be deleted.

A version that a newer one has replaced is needed until its charges are settled. It takes no new
charges, because a charge planned under the earlier catalogue number is refused. On PostgreSQL a
charge may read that number before the change commits, and commit after it. There a version counts
as replaced only after longer than any transaction takes.

A version unknown to this ledger is kept: it may belong to a registration that is not stored yet, or
to another ledger. Versions of a withdrawn dataset have their own table. They were never charged, so
nobody needs them.
"""

from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, func, select, text

from app.store import tables
from app.store.administration import store_errors
from app.store.connect import Database

DAY_MS = 86_400_000  # more than two servers' clocks differ
FOLLOWED_MIN_US = 60_000_000  # where charges and catalogue changes are not serialized
CHUNK = 500
UNSETTLED = "charged"


class SqlOldVersions:
    def __init__(self, database: Database) -> None:
        self._database = database

    def unneeded(self, present: Collection[str]) -> list[str]:
        """Those of the present versions that may be deleted."""
        listed = sorted(present)
        deletable: list[str] = []
        with store_errors(), self._database.reading() as connection:
            until = self._followed_until(connection)
            for start in range(0, len(listed), CHUNK):
                some = listed[start : start + CHUNK]
                deletable += _withdrawn(connection, some)
                old = _old(connection, some)
                deletable += [
                    row.id
                    for row in old
                    if row.followed_at is not None
                    and (until is None or row.followed_at <= until)
                    and not _is_needed(connection, row)
                ]
        return deletable

    def _followed_until(self, connection: Connection) -> int | None:
        if self._database.is_sqlite:  # one writer at a time, which reads the number first
            return None
        now = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
        return int(connection.execute(text(now)).scalar_one()) - FOLLOWED_MIN_US


def _withdrawn(connection: Connection, listed: list[str]) -> list[str]:
    withdrawn = tables.withdrawn_versions
    statement = select(withdrawn.c.id).where(withdrawn.c.id.in_(listed))
    return list(connection.execute(statement).scalars())


def _old(connection: Connection, listed: list[str]) -> list[Any]:
    """Known versions that no dataset uses now, with the times of creation and succession."""
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
    # Identifiers sort by time. There may be many charges, so read only those of the version's time.
    charged = select(charges.c.id).where(
        charges.c.version_id == version.id,
        charges.c.state == UNSETTLED,
        charges.c.id >= _made_at(version.created_at // 1000 - DAY_MS),
        charges.c.id <= _made_at(version.followed_at // 1000 + DAY_MS),
    )
    asked_of_streams = select(asks.c.id).where(
        asks.c.version_id == version.id, asks.c.state == UNSETTLED
    )
    return any(connection.execute(each.limit(1)).first() for each in (charged, asked_of_streams))


def _made_at(moment_ms: int) -> str:
    return f"q_{max(0, moment_ms).to_bytes(6).hex()}"
