"""Which prepared versions nobody needs any more.

A version that was current until it was followed by another is needed by what was charged for it and
is not settled: no charge is taken for it any more, because one that was planned under the earlier
catalogue number is refused. A version that this ledger does not know is none of its business: it
may belong to a registration that is not stored yet, or to another ledger.
"""

from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, func, select

from app.store import tables
from app.store.administration import store_errors
from app.store.connect import Database

DAY_MS = 86_400_000  # more than the clocks of two servers are apart
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
            for start in range(0, len(listed), CHUNK):
                old = _old(connection, listed[start : start + CHUNK])
                found += [row.id for row in old if not _is_needed(connection, row)]
        return found


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
    )
    if version.followed_at is not None:
        until = _made_at(version.followed_at // 1000 + DAY_MS)
        charged = charged.where(charges.c.id <= until)
    asked = select(asks.c.id).where(asks.c.version_id == version.id, asks.c.state == UNSETTLED)
    return any(connection.execute(each.limit(1)).first() for each in (charged, asked))


def _made_at(moment_ms: int) -> str:
    return f"q_{max(0, moment_ms).to_bytes(6).hex()}"
