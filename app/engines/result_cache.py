"""Cache of exact results in memory: a prepared version never changes, so they stay valid.

Only exact results are cached, never noisy ones: every query draws its own noise.
"""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock

from app.queries.tally import Exact

INTEGERS_MAX = 1_000_000


class Memo:
    """The latest results, limited by their number and by the integers they hold."""

    def __init__(self, size_max: int, integers_max: int = INTEGERS_MAX) -> None:
        self._size_max = size_max
        self._integers_max = integers_max
        self._integers = 0
        self._results: OrderedDict[Hashable, Exact] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> Exact | None:
        with self._lock:
            result = self._results.get(key)
            if result is not None:
                self._results.move_to_end(key)
            return result

    def put(self, key: Hashable, result: Exact) -> None:
        if self._size_max < 1 or _integers(result) > self._integers_max:
            return
        with self._lock:
            earlier = self._results.pop(key, None)
            if earlier is not None:
                self._integers -= _integers(earlier)
            self._results[key] = result
            self._integers += _integers(result)
            while len(self._results) > self._size_max or self._integers > self._integers_max:
                _, dropped = self._results.popitem(last=False)
                self._integers -= _integers(dropped)

    def __len__(self) -> int:
        return len(self._results)


def _integers(result: Exact) -> int:
    return sum(len(numbers) for numbers in result)
