"""The text of a scrape, for all workers of this server and for the ledger.

Counts of entries are never made anew: the books and the accounts keep them. The figures of an
account are computed once for each of its versions.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Lock

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from app.errors import StoreUnavailable
from app.ledger.account import Account
from app.ports.telemetry import FiguresOfLedger
from app.telemetry import families
from app.telemetry.counters import Workers
from app.telemetry.families import Kept

ACCOUNTS_MAX = 2_000


@dataclass(frozen=True, slots=True)
class Build:
    """The versions and the store of this server."""

    version: str
    python: str
    store: str


class ScrapedText:
    """Implements `ports.Metrics`."""

    media_type = CONTENT_TYPE_LATEST

    def __init__(
        self,
        build: Build,
        ledger: FiguresOfLedger,
        read_workers: Callable[[], Workers],
        beat: Callable[[], None],
        accounts_max: int = ACCOUNTS_MAX,
    ) -> None:
        self.beat = beat
        self._collector = _Scrape(build, ledger, read_workers, accounts_max)
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self._collector)
        self._lock = Lock()  # two scrapes at once would compute the same figures twice

    def text(self) -> bytes:
        with self._lock:
            return generate_latest(self._registry)


class _Scrape(Collector):
    def __init__(
        self,
        build: Build,
        ledger: FiguresOfLedger,
        read_workers: Callable[[], Workers],
        accounts_max: int,
    ) -> None:
        self._build = build
        self._ledger = ledger
        self._read_workers = read_workers
        self._accounts_max = accounts_max
        self._kept: dict[str, Kept] = {}

    @override
    def collect(self) -> Iterator[Metric]:
        build, workers = self._build, self._read_workers()
        try:
            figures = self._ledger.read(self._accounts_max)
        except StoreUnavailable:
            figures = None
        yield families.build_info(build.version, build.python, build.store)
        yield from families.ledger(figures, workers)
        if figures is not None:
            shown = [(name, self._figures(account)) for name, account in figures.accounts]
            self._kept = {kept.account.id: kept for _, kept in shown}
            yield from families.budgets(shown)
        yield from families.counts(workers.counts)
        yield from families.state(workers)

    def _figures(self, account: Account) -> Kept:
        kept = self._kept.get(account.id)
        if kept is None or kept.account is not account:
            kept = Kept(account, families.budget_values(account))
        return kept
