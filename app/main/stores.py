"""Parts of the ledger that work without an event loop, put together."""

from app.actions.budgets.book_losses import BookLosses
from app.actions.budgets.grant_budget import GrantBudget
from app.actions.datasets.append_epoch import AppendEpoch
from app.actions.datasets.clear_versions import ClearVersions
from app.actions.datasets.refresh_dataset import RefreshDataset
from app.actions.datasets.register_dataset import RegisterDataset
from app.actions.datasets.withdraw_dataset import WithdrawDataset
from app.actions.ledger.reconcile_ledger import ReconcileLedger
from app.actions.ledger.verify_ledger import VerifyLedger
from app.engines import LoadedEngines
from app.engines.files.connect import Limits
from app.engines.files.public_tables import FilePublicTables
from app.engines.remote.connections import Unusable, read_connections
from app.settings import Settings, SettingsError
from app.store.administration import Administration, install
from app.store.analysts import SqlAnalysts
from app.store.budgets import SqlBudgets
from app.store.connect import Database
from app.store.datasets.datasets import SqlDatasets
from app.store.datasets.old_versions import SqlOldVersions
from app.store.datasets.withdrawals import SqlWithdrawals
from app.store.history.account_entries import SqlAccountEntries
from app.store.history.history import SqlHistory
from app.store.history.streams import SqlStreams
from app.store.migrate import check_current, migrate
from app.store.rollback.charging_state import SqlStanding, open_anchors
from app.store.rollback.reconcile import SqlReconciling


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
