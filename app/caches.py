"""Caches that nobody else can read by the clock: an entry is found only for whom it was made.

What is cached on the way of a question depends on that question. If one entry served everybody, a
fast reply would show an analyst that somebody else had asked the same before. So the analyst is
part of every key. Code that works for an analyst runs inside `owned_by(analyst)`.
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
    """Inside, in this thread or task, caches hold and find the entries of this analyst alone."""
    token = _OWNER.set(analyst_id)
    try:
        yield
    finally:
        _OWNER.reset(token)


class OwnedCache(Generic[P, T]):
    """A function whose results are kept for their owner."""

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
