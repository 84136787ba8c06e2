"""The composition root: the only file that imports every package."""

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
from app.actions.budgets.book_losses import BookLosses
from app.actions.budgets.follow_balances import FollowBalances
from app.actions.budgets.grant_budget import GrantBudget
from app.actions.budgets.replay_account import ReplayAccount
from app.actions.budgets.rewind_account import RewindAccount
from app.actions.budgets.trace_tradeoff import TraceTradeoff
from app.actions.datasets.append_epoch import AppendEpoch
from app.actions.datasets.clear_versions import ClearVersions
from app.actions.datasets.draft_card import DraftCard
from app.actions.datasets.refresh_dataset import RefreshDataset
from app.actions.datasets.register_dataset import RegisterDataset
from app.actions.datasets.withdraw_dataset import WithdrawDataset
from app.actions.ledger.reconcile_ledger import ReconcileLedger
from app.actions.ledger.verify_ledger import VerifyLedger
from app.actions.scheduling.background import Background
from app.actions.scheduling.planning_threads import PlanningThreads
from app.actions.scheduling.slots import Slots, lanes_for
from app.api.http.application import make_application
from app.api.http.connections.entrance import Entrance
from app.api.http.connections.forwarded import TrustedProxies
from app.api.http.connections.sockets import GuardedProtocol, SocketLimits
from app.api.http.services import Services
from app.engines import LoadedEngines
from app.engines.files.connect import Limits
from app.engines.files.made_up_rows import DuckDBMadeUpTables
from app.engines.files.public_tables import FilePublicTables
from app.engines.remote.connections import Unusable, read_connections
from app.mechanisms.sampling.system import SystemRandom
from app.planning.plan import Planner
from app.planning.stream_request import StreamPlanner
from app.settings import Settings, SettingsError
from app.stopping import Stopping
from app.store.administration import Administration, install
from app.store.analysts import SqlAnalysts
from app.store.budgets import SqlBudgets
from app.store.catalogue import CachedCatalogue
from app.store.connect import Database
from app.store.datasets.datasets import SqlDatasets
from app.store.datasets.old_versions import SqlOldVersions
from app.store.datasets.withdrawals import SqlWithdrawals
from app.store.encryption import LENGTH, AesSecretBox
from app.store.history.account_entries import SqlAccountEntries
from app.store.history.balance_changes import SqlBalanceChanges
from app.store.history.history import SqlHistory
from app.store.history.streams import SqlStreams
from app.store.migrate import Ready, check_current, migrate
from app.store.rollback.charging_state import SqlStanding, open_anchors
from app.store.rollback.reconcile import SqlReconciling
from app.store.writer.writer import Writer
from app.tuning import tune_interpreter
from app.web.pages import ROUTES
from app.web.session import SEALED_LENGTH, Sessions
from app.web.site import Site

PREPARING_THREADS = 4
REHEARSALS_WAITING = 10  # of one analyst
READS_WAITING = 8  # of one analyst: samples, trade-off curves and histories


def loaded_engines(settings: Settings) -> LoadedEngines:
    try:
        connections = read_connections(settings.connections)
    except Unusable as error:
        raise SettingsError(str(error)) from None
    return LoadedEngines(
        home=settings.home,
        data_roots=settings.data_roots,
        connections=connections,
        memory_limit=settings.engine_memory,
        threads=settings.engine_threads,
        timeout_seconds=settings.engine_timeout_seconds,
        ingest_timeout_seconds=settings.ingest_timeout_seconds,
        prepared_bytes_max=settings.prepared_bytes_max,
    )


def public_tables(settings: Settings) -> FilePublicTables:
    limits = Limits(settings.home, settings.engine_memory, settings.engine_threads)
    return FilePublicTables(limits, settings.data_roots)


class Stores:
    """Parts of the ledger that work without an event loop, as operator commands use them."""

    def __init__(self, settings: Settings) -> None:
        self.database = Database(settings.database_url)
        administration = Administration(self.database)
        self.people = SqlAnalysts(self.database, administration)
        self.datasets = SqlDatasets(self.database, administration)
        self.budgets = SqlBudgets(self.database, administration)
        self.history = SqlHistory(self.database)
        self.account_entries = SqlAccountEntries(self.database)
        self.streams = SqlStreams(self.database)
        self.engines = loaded_engines(settings)
        self.tables = public_tables(settings)
        self.register_dataset = RegisterDataset(self.datasets, self.engines)
        self.clear_versions = ClearVersions(SqlOldVersions(self.database), self.engines)
        self.append_epoch = AppendEpoch(self.datasets, self.engines, self.clear_versions)
        self.refresh_dataset = RefreshDataset(self.datasets, self.engines, self.clear_versions)
        self.withdraw_dataset = WithdrawDataset(SqlWithdrawals(administration), self.clear_versions)
        self.grant_budget = GrantBudget(self.budgets, self.datasets, self.people)
        self.book_losses = BookLosses(self.budgets, self.datasets, self.people)
        self.standing = SqlStanding(self.database, administration)
        self.stopped = False  # True if the ledger was behind its anchors at the start
        self.verify_ledger = VerifyLedger(self.history, self.standing)
        reconciling = SqlReconciling(self.database, administration, self.standing)
        self.reconcile_ledger = ReconcileLedger(reconciling)

    def open_anchors(self, settings: Settings) -> None:
        """Open the anchors; from now on every commit is reported to them."""
        try:
            self.database.anchors = open_anchors(self.database, settings.anchor_folders)
        except OSError as error:
            raise SettingsError(
                f"The anchor folder cannot be written: {error.strerror}. "
                "Check BURSAR_HOME and BURSAR_ANCHOR."
            ) from None

    def get_current(self, settings: Settings) -> None:
        """Migrate the embedded ledger; refuse an unsafe or outdated one."""
        if settings.embedded:
            migrate(self.database)
        check_current(self.database)
        self.database.check_safe()
        install(self.database)
        self.open_anchors(settings)

    def get_ready(self, settings: Settings) -> str | None:
        """Run `get_current`, and return the first administrator's key if one was made here.

        If the ledger is behind its anchors, it can be read, and charging is stopped.
        """
        self.get_current(settings)
        self.stopped = self.standing.compare().stopped
        if not self.stopped:
            self.standing.begin()
        made = self.people.first_admin(settings.admin_key)
        return None if settings.admin_key else made


def application(settings: Settings | None = None) -> ASGIApp:
    """The application of one worker process; uvicorn calls it by name."""
    config = settings or Settings.from_environment()
    proxies, limit = TrustedProxies(config.trusted_proxies), config.connections_each
    seconds = config.header_seconds, config.body_seconds
    GuardedProtocol.limits = SocketLimits(*seconds, limit, proxies)
    stopping = Stopping(config.stop_seconds, config.drain_seconds)
    interface = make_application(
        lambda: open_services(config, stopping), body_bytes_max=config.body_bytes_max
    )
    sessions = Sessions(secret_box(config, "sessions", SEALED_LENGTH), config.public_url)
    return Entrance(Site(interface, ROUTES, sessions), proxies, limit, stopping.is_draining)


def secret_box(config: Settings, purpose: str, length: int) -> AesSecretBox:
    """Without a key file if other servers may share the ledger: it would not reach them."""
    home = config.home if config.embedded else None
    return AesSecretBox(config.secret_key, home, purpose=purpose, length=length)


@asynccontextmanager
async def open_services(config: Settings, stopping: Stopping) -> AsyncIterator[Services]:
    stopping.listen()
    stores = Stores(config)
    stores.open_anchors(config)
    stores.standing.join()
    worker = Worker(config, stores)
    stopping.end_streams(asyncio.get_running_loop(), worker.follow_balances.stop)
    worker.preparing.submit(stores.clear_versions)
    tune_interpreter()
    try:
        yield worker.services(stopping.is_draining)
    finally:
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
            *(() if anchors is None else (anchors.close,)),
        )
        stopping.hurry()


class Worker:
    """Threads, queues and actions of one worker process, in front of the stores."""

    def __init__(self, config: Settings, stores: Stores) -> None:
        self._config = config
        self._stores = stores
        self.writer = Writer(stores.database)
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
        self._slots = Slots(lanes, public=public)
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
            is_draining=is_draining,
        )

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
        )
