"""Counts and spans of one worker, as the core reports them."""

from contextlib import AbstractContextManager, nullcontext

from app.ports.telemetry import PastSpan
from app.telemetry.counters import Counters, CountName
from app.telemetry.traces import Traces

NOTHING = nullcontext()
LANES = ("quick", "short", "long", "learner")
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)  # upper ends of the buckets
BUCKETS = tuple(("batches", str(size)) for size in BATCH_SIZES)
# Counts without a label, and the labels of the others.
PLAIN = ("charges", "answers", "repeats", "forfeits", "voids", "asks", "orders")
LABELS = {
    "slots": LANES,
    "slot_ms": LANES,
    "batches": tuple(map(str, BATCH_SIZES)),
}
STATUS_CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx")
UNMATCHED = "unmatched"  # the route of a request that has none
OTHER = "other"  # a method that its route does not take


def count_names(
    routes: list[tuple[str, str]], problems: list[str], questions: list[str]
) -> list[CountName]:
    """Every count of a server.

    `routes` are pairs of template and method, `problems` types of problem, `questions` kinds.
    """
    requests = [*routes, (UNMATCHED, OTHER), *((route, OTHER) for route, _ in routes)]
    return [
        *((name, "") for name in PLAIN),
        *((name, label) for name, labels in LABELS.items() for label in labels),
        *(("refusals", kind) for kind in problems),
        *(("overruns", kind) for kind in questions),
        *(("requests", *each, status) for each in requests for status in STATUS_CLASSES),
    ]


class WorkerObserver:
    """Implements `ports.Observer`. Without traces a span costs a comparison."""

    def __init__(self, counters: Counters, traces: Traces | None = None) -> None:
        self._counters = counters
        self._traces = traces

    def count(self, name: str, label: str = "", number: int = 1) -> None:
        self._counters.add((name, label), number)

    def batch(self, orders: int) -> None:
        """Count a batch of the writer by its size."""
        self._counters.add(BUCKETS[(orders - 1).bit_length()])
        self._counters.add(("orders", ""), orders)

    def span(self, name: str) -> AbstractContextManager[object]:
        return NOTHING if self._traces is None else self._traces.span(name)

    def past_spans(self, *spans: PastSpan) -> None:
        if self._traces is not None:
            self._traces.past_spans(*spans)
