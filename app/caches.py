"""Caches with separate entries for each analyst, so that response times leak nothing.

A cached value depends on a query. If one entry served everybody, a fast reply would reveal to an
analyst that somebody else had asked the same. So the analyst is part of every key. Code that works
for an analyst runs inside `owned_by(analyst)`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, partial
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_OWNER: ContextVar[str] = ContextVar("owner", default="")


@contextmanager
def owned_by(analyst_id: str) -> Iterator[None]:
    """Use this analyst's cache entries alone, inside the block, in this thread or task."""
    token = _OWNER.set(analyst_id)
    try:
        yield
    finally:
        _OWNER.reset(token)


class OwnedCache(Generic[P, T]):
    """A function whose results are cached for their owner."""

    def __init__(self, function: Callable[P, T], maxsize: int) -> None:
        def of_owner(owner: str, *args: P.args, **kwargs: P.kwargs) -> T:
            return function(*args, **kwargs)

        self._cached: Any = lru_cache(maxsize=maxsize)(of_owner)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = self._cached(_OWNER.get(), *args, **kwargs)
        return result

    def cache_clear(self) -> None:
        self._cached.cache_clear()


def owned_cache(maxsize: int) -> Callable[[Callable[P, T]], OwnedCache[P, T]]:
    """Like `functools.lru_cache`, with the owner in every key. The size is for all owners."""
    return partial(OwnedCache, maxsize=maxsize)
