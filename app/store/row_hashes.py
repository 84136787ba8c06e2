"""Keyed digests of rows outside the chains. Entries record them, and verification compares them.

The key comes from the ledger's secret, so that nobody who reads an entry can test guesses.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select

from app.ledger.stamp import stamp_key, stored_digest
from app.store import tables

VERSION_CONTENT = ("id", "dataset_id", "number", "digest", "fingerprint", "seed", "appended")


def ledger_key(connection: Connection) -> bytes:
    """Key of the ledger's stamps and row digests."""
    return stamp_key(str(connection.execute(select(tables.installation.c.secret)).scalar()))


def version_hash(key: bytes, row: Mapping[str, Any]) -> str:
    return stored_digest(key, *(str(row[name]) for name in VERSION_CONTENT))


def token_hash(key: bytes, stored_hash: str) -> str:
    """Digest of the hash that a request's key must match."""
    return stored_digest(key, stored_hash)
