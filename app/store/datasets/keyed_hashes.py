"""Keyed hashes of what data are known by."""

import hashlib
import hmac

from sqlalchemy import select

from app.store import tables
from app.store.administration import Change


def marked(change: Change, *texts: str) -> list[str]:
    """Keyed, so that nobody who sees a fingerprint can try guesses of the data against it."""
    secret: str = change.connection.execute(select(tables.installation.c.secret)).scalar_one()
    return [hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest() for text in texts]
