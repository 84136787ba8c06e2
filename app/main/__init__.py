"""The composition root: the only room that imports every package."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from starlette.types import ASGIApp

from app.actions.asking.ask_query import AnswerLimits, AnswerQuery
from app.actions.asking.ask_stream import AskStream
from app.actions.asking.cancel_query import CancelQuery
from app.actions.asking.open_stream import OpenStream
from app.actions.asking.paying_accounts import PayingAccounts
from app.actions.asking.preview_queries import PreviewQueries
from app.actions.asking.preview_stream import PreviewStream
from app.actions.asking.readiness import DatasetReadiness
from app.actions.asking.rehearse_query import RehearseQuery
from app.actions.budgets.follow_balances import FollowBalances
from app.actions.budgets.replay_account import ReplayAccount
from app.actions.budgets.rewind_account import RewindAccount
from app.actions.budgets.trace_tradeoff import TraceTradeoff
from app.actions.datasets.draft_card import DraftCard
from app.actions.scheduling.background import Background
from app.actions.scheduling.planning_threads import PlanningThreads
from app.actions.scheduling.slots import Slots, lanes_for
from app.api.http.application import VERSION, make_application
from app.api.http.connections.entrance import Entrance
from app.api.http.connections.forwarded import TrustedProxies
from app.api.http.connections.sockets import GuardedProtocol, SocketLimits
from app.api.http.problems import kinds
from app.api.http.services import Services
from app.engines.files.made_up_rows import DuckDBMadeUpTables
from app.main.stores import Stores
from app.mechanisms.sampling.system import SystemRandom
from app.planning.plan import Planner
from app.planning.stream_request import StreamPlanner
from app.queries import QUERIES
from app.settings import Settings
from app.stopping import Stopping
from app.store.catalogue import CachedCatalogue
from app.store.encryption import LENGTH, AesSecretBox
from app.store.history.balance_changes import SqlBalanceChanges
from app.store.history.ledger_figures import SqlLedgerFigures
from app.store.migrate import Ready
from app.store.writer.writer import Writer
from app.telemetry.metrics import ScrapedText
from app.telemetry.worker import KnownLabels, WorkerTelemetry
from app.tuning import tune_interpreter
from app.web.pages import ROUTES
from app.web.session import SEALED_LENGTH, Sessions
from app.web.site import Site

PREPARING_THREADS = 4
REHEARSALS_WAITING = 10  # of one analyst
READS_WAITING = 8  # of one analyst: samples, trade-off curves and histories


def application(settings: Settings | None = None) -> ASGIApp:
    """The application of one worker process; uvicorn calls it by name."""
    config = settings or Settings.from_environment()
    proxies, limit = TrustedProxies(config.trusted_proxies), config.connections_each
    seconds = config.header_seconds, config.body_seconds
    GuardedProtocol.limits = SocketLimits(*seconds, limit, proxies)
    stopping = Stopping(config.stop_seconds, config.drain_seconds)
    interface = make_application(
        lambda: open_services(config, telemetry, stopping), body_bytes_max=config.body_bytes_max
    )
    pages = [(route.path, method) for route in ROUTES for method in route.methods or ()]
    known = KnownLabels([*interface.routes, *pages], kinds(), [*QUERIES, "stream"])
    telemetry = WorkerTelemetry(
        known, config.worker_folder, version=VERSION, traces_url=config.traces_url
    )
    sessions = Sessions(secret_box(config, "sessions", SEALED_LENGTH), config.public_url)
    site = Site(interface, ROUTES, sessions)
    entrance = Entrance(site, proxies, limit, stopping.is_draining)
    return telemetry.observed(entrance, config.release_grid_ms / 1000)


def secret_box(config: Settings, purpose: str, length: int) -> AesSecretBox:
    """Only an embedded ledger has a key file: servers that share a ledger would not share it."""
    home = config.home if config.embedded else None
    return AesSecretBox(config.secret_key, home, purpose=purpose, length=length)


@asynccontextmanager
async def open_services(
    config: Settings, telemetry: WorkerTelemetry, stopping: Stopping
) -> AsyncIterator[Services]:
    stopping.listen()
    stores = Stores(config)
    stores.open_anchors(config)
    stores.standing.join()
    worker = Worker(config, stores, telemetry)
    stopping.end_streams(asyncio.get_running_loop(), worker.follow_balances.stop)
    worker.preparing.submit(stores.clear_versions)
    tune_interpreter()
    try:
        yield worker.services(stopping.is_draining)
    finally:
        telemetry.stop()
        await worker.background.stop()
        for pool in worker.pools:
            pool.shutdown(wait=False, cancel_futures=True)
        await worker.writer.stop()
        stopping.settled()
        anchors = stores.database.anchors
        stopping.release(
            *(pool.shutdown for pool in worker.pools),  # engines close when no thread queries them
            stores.engines.close,
            stores.database.engine.dispose,
            telemetry.close,
            *(() if anchors is None else (anchors.close,)),
        )
        stopping.hurry()


class Worker:
    """Threads, queues and actions of one worker process, in front of the stores."""

    def __init__(self, config: Settings, stores: Stores, telemetry: WorkerTelemetry) -> None:
        self._config = config
        self._stores = stores
        self._telemetry = telemetry
        self._observer = telemetry.observer
        self.writer = Writer(stores.database, self._observer)
        self.background = Background()
        self.preparing = ThreadPoolExecutor(PREPARING_THREADS, thread_name_prefix="prepare")
        self._catalogue = CachedCatalogue(self.writer)
        self.follow_balances = FollowBalances(SqlBalanceChanges(stores.database), self._catalogue)
        self._noise = SystemRandom()
        self._planner = Planner(groups_max=config.groups_max)
        self._seal = secret_box(config, "streams", LENGTH)
        self._grid_seconds = config.release_grid_ms / 1000
        public = config.release_grid_ms > 0
        lanes = lanes_for(os.cpu_count() or 1, config.workers, public=public)
        self._slots = Slots(
            lanes, public=public, grid_seconds=self._grid_seconds, observer=self._observer
        )
        self._planning = PlanningThreads(waiting_each=config.running_each)
        self._rehearsing = PlanningThreads(1, REHEARSALS_WAITING, "rehearsal")
        self._reading = PlanningThreads(2, READS_WAITING, "reading", "requests")
        self._verifying = PlanningThreads(1, READS_WAITING, "verification", "requests")
        self._readiness = DatasetReadiness(stores.engines, self.preparing)
        threads = self._planning, self._rehearsing, self._reading, self._verifying
        self.pools = [self.preparing, *self._slots.pools, *(some.pool for some in threads)]

    def services(self, is_draining: Callable[[], bool]) -> Services:
        stores = self._stores
        replay_account = ReplayAccount(stores.account_entries)
        return Services(
            answer_query=self._answer_query(),
            cancel_query=CancelQuery(self.writer, stores.history, self._config.answer_seconds),
            preview_queries=PreviewQueries(
                self.writer,
                self._planner,
                self._planning,
                PayingAccounts(self.writer, self._catalogue, stores.people),
            ),
            rehearse_query=self._rehearse_query(),
            preview_stream=PreviewStream(
                self.writer, self._catalogue, StreamPlanner(), self._planning
            ),
            open_stream=self._open_stream(),
            ask_stream=self._ask_stream(),
            draft_card=DraftCard(stores.engines),
            register_dataset=stores.register_dataset,
            append_epoch=stores.append_epoch,
            refresh_dataset=stores.refresh_dataset,
            withdraw_dataset=stores.withdraw_dataset,
            grant_budget=stores.grant_budget,
            book_losses=stores.book_losses,
            follow_balances=self.follow_balances,
            trace_tradeoff=TraceTradeoff(stores.history),
            replay_account=replay_account,
            rewind_account=RewindAccount(stores.account_entries, replay_account),
            verify_ledger=stores.verify_ledger,
            reconcile_ledger=stores.reconcile_ledger,
            reading=self._reading,
            verifying=self._verifying,
            planner=self._planner,
            ledger=self.writer,
            catalogue=self._catalogue,
            people=stores.people,
            datasets=stores.datasets,
            budgets=stores.budgets,
            history=stores.history,
            account_entries=stores.account_entries,
            streams=stores.streams,
            choice=self._noise,
            tables=stores.tables,
            readiness=Ready(stores.database),
            metrics=self._metrics(),
            scrape_token=self._config.scrape_token,
            is_draining=is_draining,
        )

    def _metrics(self) -> ScrapedText:
        database = self._stores.database
        figures = SqlLedgerFigures(database)
        return self._telemetry.start(self._state, figures, database.engine.dialect.name)

    def _state(self) -> dict[str, int]:
        queued = self._slots.waiting
        return {
            "queued": queued,
            "running": max(0, len(self.background) - queued),
            "plans_waiting": self._planning.waiting,
            "orders_waiting": self.writer.waiting,
            "writer_lag_ms": round(self.writer.lag_seconds() * 1000),
            "watchers": self.follow_balances.watchers,
            "feed_lag_ms": round(self.follow_balances.lag_seconds() * 1000),
            "stopped": int(self.writer.stopped),
        }

    def _rehearse_query(self) -> RehearseQuery:
        parts = self._catalogue, self._planner, self._planning, self._rehearsing
        tables = DuckDBMadeUpTables.within(self._config.home)
        return RehearseQuery(*parts, tables, self._noise, self._noise)

    def _answer_query(self) -> AnswerQuery:
        config = self._config
        limits = AnswerLimits(
            answer_seconds=config.answer_seconds,
            engine_seconds=config.engine_timeout_seconds,
            learning_seconds=config.learning_timeout_seconds,
            running_max=config.running_max,
            running_each=config.running_each,
            slot_factor=config.slot_factor,
        )
        return AnswerQuery(
            self.writer,
            self._catalogue,
            self._stores.engines,
            self._readiness,
            self._noise,
            self._planner,
            self._planning,
            self._slots,
            self.background,
            config.lease_seconds,
            limits,
            self._grid_seconds,
            self._observer,
        )

    def _open_stream(self) -> OpenStream:
        return OpenStream(
            self.writer,
            self._catalogue,
            self._readiness,
            self._noise,
            self._seal,
            StreamPlanner(),
            self._planning,
            self._config.lease_seconds,
            self._grid_seconds,
            self._observer,
        )

    def _ask_stream(self) -> AskStream:
        return AskStream(
            self.writer,
            self._catalogue,
            self._stores.engines,
            self._readiness,
            self._stores.streams,
            self._noise,
            self._seal,
            self._slots,
            self._config.lease_seconds,
            self._grid_seconds,
            self._config.slot_factor,
            self._observer,
        )
