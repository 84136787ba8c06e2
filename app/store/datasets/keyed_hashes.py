"""Keyed hashes that identify registered data."""

import hashlib
import hmac

from sqlalchemy import select

from app.store import tables
from app.store.administration import Change


def marked(change: Change, *texts: str) -> list[str]:
    """HMAC of each text under the ledger's secret, so that nobody can test guesses of the data."""
    secret: str = change.connection.execute(select(tables.installation.c.secret)).scalar_one()
    return [hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest() for text in texts]
