"""A version that is prepared before the store accepts it, and must go again if it does not."""

from collections.abc import Iterator
from contextlib import contextmanager

from app.errors import Conflict, Invalid
from app.ports.engines import Engine


@contextmanager
def dropped_if_refused(engine: Engine, version_id: str) -> Iterator[None]:
    """Drop a prepared version if the store refuses it. It stays if the outcome is unknown."""
    try:
        yield
    except (Conflict, Invalid):
        engine.drop(version_id)
        raise
