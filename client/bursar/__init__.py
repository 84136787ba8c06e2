"""Ask private data. A Bursar server prices every question, charges it, and answers with noise.

import bursar
from bursar import col

b = bursar.connect()
census = b["census"]
census.where(col.age >= 65).count().ask(epsilon=0.1)
"""

from pathlib import Path
from typing import Any

from bursar import calculator, mechanisms
from bursar.ask.amounts import Loss
from bursar.ask.filters import Column, Condition, col
from bursar.ask.kinds import grid, intervals, part
from bursar.asynchronous import AsyncBudget, AsyncClient, AsyncDataset, AsyncQuestion
from bursar.errors import (
    AccountFrozen,
    BadQuestion,
    BudgetExhausted,
    BursarError,
    Conflict,
    DatasetClosed,
    EngineFailed,
    EngineUnavailable,
    IdempotencyConflict,
    InternalError,
    Invalid,
    LedgerBehind,
    Malformed,
    MethodNotAllowed,
    MissingPackage,
    NoGrant,
    NoLogin,
    NoSuchName,
    NotAuthenticated,
    NotFound,
    NotPermitted,
    PreconditionFailed,
    Problem,
    QuestionForfeited,
    QuestionVoided,
    RolledBack,
    SecretUnavailable,
    SourceChanged,
    StillRunning,
    StoreUnavailable,
    StreamEnded,
    TlsFailed,
    TooLarge,
    TooManyRunning,
    Unreachable,
)
from bursar.http.progress import show_nothing, show_progress
from bursar.http.rollback_check import SeenCharges, state_folder
from bursar.login import find_login
from bursar.results.answers import Answer, Charged, Interval, Receipt
from bursar.results.budgets import Forecast, History, Tradeoff
from bursar.results.previews import ExpectedError, PlanPreview, Preview
from bursar.sync import Budget, Client, Dataset, Plan, Question, Stream

__version__ = "0.1.0"


def connect(
    url: str | None = None,
    key: str | None = None,
    *,
    verify: str | bool = True,
    progress: bool = True,
    state: str | Path | None = "default",
) -> Client:
    """Connect to a server: arguments, then BURSAR_URL and BURSAR_KEY, then `bursar login`.

    `verify` names a file of authorities if the server's certificate is your own; so does the
    variable BURSAR_CA. `state` is the
    folder in which the client remembers the last charge that it saw; None remembers nothing.
    """
    return Client(*_options(url, key, verify, progress, state))


def connect_async(
    url: str | None = None,
    key: str | None = None,
    *,
    verify: str | bool = True,
    progress: bool = True,
    state: str | Path | None = "default",
) -> AsyncClient:
    """Connect from asynchronous code. Its methods have the same names, and are awaited."""
    return AsyncClient(*_options(url, key, verify, progress, state))


def _options(
    url: str | None, key: str | None, verify: str | bool, progress: bool, state: str | Path | None
) -> Any:
    login = find_login(url, key)
    folder = state_folder() if state == "default" else None if state is None else Path(state)
    shown = show_progress if progress else show_nothing
    trusted = (login.ca or True) if verify is True else verify
    return login, trusted, shown, SeenCharges(login.url, login.key, folder)


__all__ = [
    "AccountFrozen",
    "Answer",
    "AsyncBudget",
    "AsyncClient",
    "AsyncDataset",
    "AsyncQuestion",
    "BadQuestion",
    "Budget",
    "BudgetExhausted",
    "BursarError",
    "Charged",
    "Client",
    "Column",
    "Condition",
    "Conflict",
    "Dataset",
    "DatasetClosed",
    "EngineFailed",
    "EngineUnavailable",
    "ExpectedError",
    "Forecast",
    "History",
    "IdempotencyConflict",
    "InternalError",
    "Interval",
    "Invalid",
    "LedgerBehind",
    "Loss",
    "Malformed",
    "MethodNotAllowed",
    "MissingPackage",
    "NoGrant",
    "NoLogin",
    "NoSuchName",
    "NotAuthenticated",
    "NotFound",
    "NotPermitted",
    "Plan",
    "PlanPreview",
    "PreconditionFailed",
    "Preview",
    "Problem",
    "Question",
    "QuestionForfeited",
    "QuestionVoided",
    "Receipt",
    "RolledBack",
    "SecretUnavailable",
    "SourceChanged",
    "StillRunning",
    "StoreUnavailable",
    "Stream",
    "StreamEnded",
    "TlsFailed",
    "TooLarge",
    "TooManyRunning",
    "Tradeoff",
    "Unreachable",
    "calculator",
    "col",
    "connect",
    "connect_async",
    "grid",
    "intervals",
    "mechanisms",
    "part",
]
