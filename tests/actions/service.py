"""The actions over a real SQLite ledger and a real engine, without HTTP."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

from app.access import Principal, Role, holders_of
from app.accounting.rules.terms import GrantTerms
from app.actions.asking.ask_query import AnswerLimits, AnswerQuery
from app.actions.asking.charge import QueryRequest, Reply
from app.actions.asking.paying_accounts import PayingAccounts
from app.actions.asking.preview_queries import PreviewQueries
from app.actions.asking.readiness import DatasetReadiness
from app.actions.scheduling.background import Background
from app.actions.scheduling.planning_threads import PlanningThreads
from app.actions.scheduling.slots import Lanes, Slots
from app.data.card import Dataset, Source
from app.ledger.account import EVERYBODY, Account
from app.ledger.chain import canonical
from app.ledger.precondition import Precondition
from app.ledger.verification.verify import verify
from app.main.stores import Stores
from app.mechanisms.sampling.system import SystemRandom
from app.names import folded, new_id
from app.planning.plan import Planner
from app.planning.preview_request import AssumedQuestion
from app.planning.request import Question
from app.settings import Settings
from app.store.catalogue import CachedCatalogue
from app.store.writer.writer import Writer
from tests.queries.cards import card

ADMIN = Principal("a_admin", "admin", Role.ADMIN, "k")
ROWS = [(30, 1.5, "Bern", True, "1990-01-01"), (60, 2.5, "Chur", False, "1960-01-01")] * 20


class Service:
    def __init__(self, folder: Path, *, lease_seconds: float = 60.0) -> None:
        (folder / "data").mkdir(exist_ok=True)
        self.file = folder / "data" / "people.csv"
        lines = [",".join(map(str, row)) for row in ROWS]
        self.file.write_text("\n".join(["age,income,city,member,born", *lines]) + "\n")
        settings = Settings.from_environment({"BURSAR_HOME": str(folder)})
        self.stores = Stores(settings)
        self.stores.get_ready(settings)
        self.writer = Writer(self.stores.database)
        self.catalogue = CachedCatalogue(self.writer)
        self.threads = ThreadPoolExecutor(2)
        self.planning = PlanningThreads()
        self.slots = Slots(Lanes(2, 2, 2, 2, spare_threads=0), public=False)
        self.answer_query = AnswerQuery(
            self.writer,
            self.catalogue,
            self.stores.engines,
            DatasetReadiness(self.stores.engines, self.threads),
            SystemRandom(),
            Planner(),
            self.planning,
            self.slots,
            Background(),
            lease_seconds,
            AnswerLimits(answer_seconds=60.0, engine_seconds=30.0, learning_seconds=60.0),
        )
        self.preview_queries = PreviewQueries(
            self.writer,
            Planner(),
            self.planning,
            PayingAccounts(self.writer, self.catalogue, self.stores.people),
        )
        analyst = self.stores.people.create("admin", "Ann", Role.ANALYST, None, None, "")
        self.ann = Principal(analyst.id, "Ann", Role.ANALYST, "k", holders_of("Ann", ()))
        self.key = self.issue("Ann")
        self.dataset = self.register("people")
        self.grant(EVERYBODY, "2")
        self.grant("ann", "1")

    def person(self, name: str, role: Role) -> str:
        """Make a person and return their key."""
        self.stores.people.create("admin", name, role, None, None, "")
        return self.issue(name)

    def issue(self, name: str) -> str:
        _, secret = self.stores.people.issue_key(
            "admin", name, expires_at=None, reason=None, request=None, body=""
        )
        assert secret is not None
        return secret

    def register(self, name: str, *, path: str = "people.csv", **more: Any) -> Dataset:
        arguments = {"card": card(), "reason": None, "request": None, "body": "", **more}
        return self.stores.register_dataset(
            arguments.pop("principal", ADMIN),
            name=name,
            description="",
            source=Source(arguments.pop("engine", "duckdb"), path),
            **arguments,
        )

    def grant(
        self, holder: str, epsilon: str, *, delta: Decimal = Decimal(0), **more: Any
    ) -> Account:
        arguments = {
            "dataset": "people",
            "currency": "pure",
            "precondition": Precondition(),
            "reason": None,
            **more,
        }
        budget, _ = self.stores.grant_budget(
            arguments.pop("principal", ADMIN),
            holder=holder,
            wish=GrantTerms(epsilon=Decimal(epsilon), delta=delta),
            **arguments,
        )
        return budget.account

    def request(
        self, body: dict[str, Any], *, key: str | None = None, token: str | None = None
    ) -> QueryRequest:
        question = Question.model_validate(body)
        text = canonical(body)
        return QueryRequest(
            token or self.key, question, text, str(hash(text)), key or new_id("key")
        )

    def ask(self, query: dict[str, Any], *, key: str | None = None, **more: Any) -> Reply:
        return asyncio.run(self.reply(body(query, **more), key=key))

    async def reply(self, body: dict[str, Any], *, key: str | None = None) -> Reply:
        """The reply to a caller who waits for it."""
        reply = await self.answer_query(self.request(body, key=key))
        assert isinstance(reply, Reply)
        return reply

    def preview(
        self,
        *bodies: dict[str, Any],
        listed: bool = True,
        principal: Principal | None = None,
        **more: Any,
    ) -> list[dict[str, Any]]:
        questions = [AssumedQuestion.model_validate(each) for each in bodies]
        return asyncio.run(
            self.preview_queries(
                principal or self.ann, questions, at="" if listed else None, **more
            )
        )

    def account(self, holder: str) -> Account:
        found = self.stores.budgets.all(holders=(folded(holder),), after="", limit=10)
        return found[0][1].account

    def sound(self) -> bool:
        return verify(self.stores.history.snapshot(None, stored=True)).sound

    def close(self) -> None:
        self.threads.shutdown(wait=True)
        for pool in (*self.slots.pools, self.planning.pool):
            pool.shutdown(wait=True)
        asyncio.run(self.writer.stop())
        self.stores.engines.close()
        self.stores.database.engine.dispose()


def body(query: dict[str, Any], *, epsilon: str = "0.1", **more: Any) -> dict[str, Any]:
    return {"dataset": "people", "query": query, "privacy": {"epsilon": epsilon}, **more}


@contextmanager
def service_in(folder: Path, **options: Any) -> Iterator[Service]:
    service = Service(folder, **options)
    try:
        yield service
    finally:
        service.close()
