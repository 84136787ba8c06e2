"""Services of the routes: actions and stores, composed in `main.py`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from fastapi import Request

from app.actions.asking.ask_query import AnswerQuery
from app.actions.asking.ask_stream import AskStream
from app.actions.asking.cancel_query import CancelQuery
from app.actions.asking.open_stream import OpenStream
from app.actions.asking.preview_queries import PreviewQueries
from app.actions.asking.preview_stream import PreviewStream
from app.actions.asking.rehearse_query import RehearseQuery
from app.actions.budgets.book_losses import BookLosses
from app.actions.budgets.follow_balances import FollowBalances
from app.actions.budgets.grant_budget import GrantBudget
from app.actions.budgets.replay_account import ReplayAccount
from app.actions.budgets.rewind_account import RewindAccount
from app.actions.budgets.trace_tradeoff import TraceTradeoff
from app.actions.datasets.append_epoch import AppendEpoch
from app.actions.datasets.draft_card import DraftCard
from app.actions.datasets.refresh_dataset import RefreshDataset
from app.actions.datasets.register_dataset import RegisterDataset
from app.actions.datasets.withdraw_dataset import WithdrawDataset
from app.actions.ledger.reconcile_ledger import ReconcileLedger
from app.actions.ledger.verify_ledger import VerifyLedger
from app.actions.scheduling.planning_threads import PlanningThreads
from app.data.sample_rows import ColumnValues
from app.planning.plan import Planner
from app.ports.engines import PublicTables
from app.ports.ledger import Budgets, Catalogue, EntriesOfAccounts, History, Ledger, Streams
from app.ports.registry import Analysts, Datasets
from app.ports.telemetry import Metrics


class ReadinessCheck(Protocol):
    def check(self) -> None:
        """Raise StoreUnavailable if a charge could not be taken now."""
        ...


@dataclass(frozen=True, slots=True)
class Services:
    answer_query: AnswerQuery
    cancel_query: CancelQuery
    preview_queries: PreviewQueries
    rehearse_query: RehearseQuery
    open_stream: OpenStream
    preview_stream: PreviewStream
    ask_stream: AskStream
    draft_card: DraftCard
    register_dataset: RegisterDataset
    append_epoch: AppendEpoch
    refresh_dataset: RefreshDataset
    withdraw_dataset: WithdrawDataset
    grant_budget: GrantBudget
    book_losses: BookLosses
    follow_balances: FollowBalances
    trace_tradeoff: TraceTradeoff
    replay_account: ReplayAccount
    rewind_account: RewindAccount
    verify_ledger: VerifyLedger
    reconcile_ledger: ReconcileLedger
    reading: PlanningThreads
    verifying: PlanningThreads
    planner: Planner
    ledger: Ledger
    catalogue: Catalogue
    people: Analysts
    datasets: Datasets
    budgets: Budgets
    history: History
    account_entries: EntriesOfAccounts
    streams: Streams
    choice: ColumnValues
    tables: PublicTables
    readiness: ReadinessCheck
    metrics: Metrics
    scrape_token: str | None
    is_draining: Callable[[], bool]


def services(request: Request) -> Services:
    found: Services = request.app.state.services
    return found
