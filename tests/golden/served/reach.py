"""Everything the golden files use from the app: a rename there needs a change only here."""

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp
from typing_extensions import override

from app import main
from app.accounting import COMPOSITION_RULES
from app.accounting.curves.orders import PLACES
from app.accounting.precise import INFINITE
from app.data.card import Card, Dataset, Source
from app.data.inspection import EpochInspection, Inspection
from app.engines import ENGINES
from app.engines.files.duckdb import DuckDBEngine
from app.errors import EngineUnavailable, Invalid
from app.main.stores import Stores
from app.mechanisms import MECHANISMS
from app.mechanisms.sampling.system import SystemRandom
from app.planning.plan import Plan as Plan
from app.planning.plan import make_plan
from app.planning.request import Question
from app.settings import Settings
from tests.golden.served import noise

Json = dict[str, Any]
CURRENCIES = list(COMPOSITION_RULES)
MECHANISM_KINDS = list(MECHANISMS)
RENYI_ORDERS = list(PLACES)
FEW_DRAWS = 256  # the most that the app takes from OpenDP
NO_BOUND = INFINITE  # units that stand for no bound


class Refused(Exception):
    """A question that the planner refuses, with the pointers of the fields it names."""

    def __init__(self, pointers: list[str]) -> None:
        super().__init__(*pointers)
        self.pointers = pointers


def card_of(body: Json) -> Card:
    return Card.model_validate(body)


def planned(body: Json, card: Card, currency: str | None = None) -> Plan:
    """The plan of a question in JSON, for accounts of one currency or of any."""
    currencies = frozenset[str]() if currency is None else frozenset([currency])
    try:
        return make_plan(Question.model_validate(body), card, currencies)
    except Invalid as error:
        raise Refused([field.pointer for field in error.fields]) from None


def noise_of(plan: Plan) -> Json:
    """The mechanism with its noise, as the analyst sees it."""
    return plan.mechanism


def theorem_of(plan: Plan) -> str:
    return plan.theorem


def ledger_record(plan: Plan) -> Json:
    return plan.record


def units_of(plan: Plan) -> Json:
    """The loss in integer units, under names of our own."""
    loss = plan.loss
    return {
        "epsilon_pico": loss.epsilon,
        "delta_atto": loss.delta,
        "pure_pico": loss.pure,
        "failure_atto": loss.failure,
        "rho_pico": loss.rho,
        "mu_squared_pico": loss.mu_squared,
        "renyi_pico": list(loss.curve),
    }


def charged(plan: Plan) -> dict[str, list[int] | None]:
    """The amount an account of each currency adds to its spend; None if it cannot pay."""
    rules = COMPOSITION_RULES.items()
    spends = {currency: (rule, rule.read(plan.loss)) for currency, rule in rules}
    return {
        currency: list(spend) if rule.can_pay(spend) else None
        for currency, (rule, spend) in spends.items()
    }


# Randomness


class SeededNoise(SystemRandom):
    """The app's own samplers on `secrets`, which the golden files seed.

    OpenDP cannot be seeded, so small numbers of draws are made here instead.
    """

    @override
    def discrete_laplace(self, scale: float, size: int) -> list[int]:
        few = size <= FEW_DRAWS
        return noise.discrete_laplace(scale, size) if few else super().discrete_laplace(scale, size)

    @override
    def discrete_gaussian(self, scale: float, size: int) -> list[int]:
        few = size <= FEW_DRAWS
        return (
            noise.discrete_gaussian(scale, size) if few else super().discrete_gaussian(scale, size)
        )


# The service


class Trouble:
    """Failures of the next reads of files; none unless a step of the history plants one."""

    kind: str | None = None
    released = threading.Event()

    @classmethod
    @contextmanager
    def of(cls, kind: str) -> Iterator[None]:
        cls.kind = kind
        cls.released.clear()
        try:
            yield
        finally:
            cls.kind = None
            cls.released.set()

    @classmethod
    def strike(cls) -> None:
        if cls.kind == "gone":
            raise EngineUnavailable("the files of a golden history are gone")
        if cls.kind == "failed":
            raise RuntimeError("a golden history fails")
        if cls.kind == "held":
            cls.released.wait(60)


class TroubledEngine(DuckDBEngine):
    """An engine that shows files in a constant folder, independent of their real location.

    The ledger holds a hash of the path.
    """

    @override
    def inspect(self, source: Source, card: Card) -> Inspection:
        found = super().inspect(source, card)
        return replace(found, place=f"/golden/{Path(found.place).name}")

    @override
    def inspect_epoch(self, dataset: Dataset, path: str) -> EpochInspection:
        found = super().inspect_epoch(dataset, path)
        return replace(found, place=f"/golden/{Path(found.place).name}")

    @override
    def _asking(self, dataset: Dataset) -> Any:
        Trouble.strike()
        return super()._asking(dataset)


@asynccontextmanager
async def served(folder: Path, admin_key: str) -> AsyncIterator[ASGIApp]:
    """The whole application on a new SQLite ledger, with seeded noise and no time grid."""
    settings = Settings.from_environment(
        {
            "BURSAR_HOME": str(folder / "home"),
            "BURSAR_DATA_ROOTS": str(folder / "data"),
            "BURSAR_ADMIN_KEY": admin_key,
            "BURSAR_SECRET_KEY": "golden-" * 8,
            "BURSAR_RELEASE_GRID_MS": "0",
            "BURSAR_ENGINE_THREADS": "1",
        }
    )
    setattr(main, SystemRandom.__name__, SeededNoise)
    ENGINES["duckdb"] = f"{__name__}:{TroubledEngine.__name__}"
    stores = Stores(settings)
    stores.get_ready(settings)
    stores.database.engine.dispose()
    yield main.application(settings)
