"""Answering: charge first, read under the charge, store, and return the stored answer."""

import asyncio
import json
from collections.abc import (
    Generator,
    Iterable,
)
from contextlib import AbstractContextManager, suppress
from threading import Event
from typing import Any

import pytest
from typing_extensions import override

from app.access import Role
from app.accounting.units import PICO
from app.actions.asking import ask_query
from app.actions.asking.leased_run import LeasedRun
from app.data.card import Dataset
from app.errors import (
    BudgetExhausted,
    DatasetClosed,
    EngineFailed,
    EngineUnavailable,
    IdempotencyConflict,
    Invalid,
    NoGrant,
    NotAuthenticated,
    NotPermitted,
    QuestionForfeited,
    QuestionVoided,
    StillRunning,
)
from app.ledger.account import EVERYBODY
from app.mechanisms.sampling.system import SystemRandom
from app.ports.engines import Engine, Stop
from app.queries.block_tally import BlockCounts, BlockTally
from app.queries.tally import (
    Condition,
    Exact,
    GraphCounts,
    GraphCountsRequest,
    KeyBatch,
    KeyCountsRequest,
    Matrix,
    Records,
    StepCounts,
    StepHistogram,
    Tally,
)
from tests.actions.clock import LedgerClock
from tests.actions.service import Service, body

COUNT = {"kind": "count"}
TENTH = (PICO // 10, 0)
NOTHING = (0, 0)


class Spoiled:
    """The real engine with one fault; counts its reads."""

    has_prepared_files = True

    def __init__(self, service: Service, fault: BaseException | Event | None) -> None:
        self._real: Engine = service.stores.engines.engine("duckdb")
        self._fault = fault
        self.asked = 0

    def engine(self, name: str) -> Engine:
        return self

    def inspect(self, source: Any, card: Any) -> Any:
        return self._real.inspect(source, card)

    def prepared(self) -> list[str]:
        return self._real.prepared()

    def drop(self, version_id: str) -> bool:
        return self._real.drop(version_id)

    def inspect_epoch(self, dataset: Dataset, path: str) -> Any:
        return self._real.inspect_epoch(dataset, path)

    def records(self, dataset: Dataset, wanted: Records) -> Iterable[Matrix]:
        return self._real.records(dataset, wanted)

    def prepare(self, dataset: Dataset) -> None:
        self._real.prepare(dataset)

    def stoppable(self, stop: Stop) -> AbstractContextManager[None]:
        return self._real.stoppable(stop)

    def ready(self, dataset: Dataset) -> bool:
        return self._real.ready(dataset)

    def is_missing(self, dataset: Dataset) -> bool:
        """True if the data vanished: present before the charge; gone after it for
        EngineUnavailable.
        """
        return isinstance(self._fault, EngineUnavailable) or self._real.is_missing(dataset)

    def exact(self, dataset: Dataset, tally: Tally, asker: str) -> Exact:
        fault = self._fault
        if isinstance(fault, Event):  # only the first read waits
            self._fault = None
        self.asked += 1
        if isinstance(fault, BaseException):
            raise fault
        result = self._real.exact(dataset, tally, asker)
        if fault is not None:
            assert fault.wait(60)
        return result

    def blocks(self, dataset: Dataset, wanted: BlockTally) -> BlockCounts:
        return self._real.blocks(dataset, wanted)

    def graph(self, dataset: Dataset, wanted: GraphCountsRequest, asker: str) -> GraphCounts:
        return self._real.graph(dataset, wanted, asker)

    def steps(self, dataset: Dataset, wanted: StepHistogram) -> StepCounts:
        return self._real.steps(dataset, wanted)

    def epochs(self, dataset: Dataset, where: Condition | None) -> tuple[int, ...]:
        return self._real.epochs(dataset, where)

    def keys(self, dataset: Dataset, request: KeyCountsRequest) -> Generator[KeyBatch]:
        self.asked += 1
        if isinstance(self._fault, BaseException):
            raise self._fault
        yield from self._real.keys(dataset, request)

    def close(self) -> None:
        self._real.close()

    def cached(self, dataset: Dataset, tally: Tally, asker: str) -> Exact | None:
        return None


def spoil(service: Service, fault: BaseException | Event | None = None) -> Spoiled:
    spoiled = Spoiled(service, fault)
    service.answer_query.engines = service.answer_query.readiness.engines = spoiled
    return spoiled


def test_an_answer_is_charged_near_the_truth_and_shows_price_and_theorem(service: Service) -> None:
    reply = service.ask(COUNT, epsilon="0.9")
    answer = json.loads(reply.text)
    assert answer["status"] == "answered"
    assert abs(answer["value"] - 40) < 60  # a larger error has a probability below 1e-20
    assert answer["charged"]["epsilon"] == 0.9
    assert answer["mechanism"]["kind"] == "laplace"
    assert "Proposition 1" in answer["theorem"]
    assert "filter" in answer["theorem"]
    assert (
        service.account("ann").balance.common
        == service.account(EVERYBODY).balance.common
        == (PICO * 9 // 10, 0)
    )
    stored = service.stores.history.one(answer["id"], analyst_id=service.ann.analyst_id)
    assert stored.answer == reply.text
    assert service.sound()


@pytest.mark.parametrize(
    "query",
    [
        {"kind": "sum", "column": "age"},
        {"kind": "mean", "column": "income", "where": {"column": "age", "op": ">", "value": 1}},
        {"kind": "histogram", "column": "city"},
        {"kind": "count", "group_by": ["member", {"column": "age", "edges": list(range(20))}]},
    ],
)
def test_every_kind_of_question_gets_valid_json(service: Service, query: dict[str, Any]) -> None:
    shown = json.loads(service.ask(query).text)
    assert shown["value"] is not None
    assert set(shown) >= {"id", "status", "value", "mechanism", "interval", "charged", "receipt"}


def test_the_same_key_returns_the_same_bytes_for_one_charge(service: Service) -> None:
    replies = [service.ask(COUNT, key="k") for _ in range(5)]
    assert len({reply.text for reply in replies}) == 1
    assert [reply.replayed for reply in replies] == [False, True, True, True, True]
    assert service.account("ann").balance.common == TENTH


def test_the_same_question_is_free_unless_fresh_is_set(
    service: Service,
) -> None:
    first = service.ask(COUNT)
    again = service.ask(COUNT)
    assert (again.text, again.reused) == (first.text, True)
    fresh = service.ask(COUNT, fresh=True)
    assert not fresh.reused
    assert json.loads(fresh.text)["id"] != json.loads(first.text)["id"]
    assert service.account("ann").balance.common == (2 * PICO // 10, 0)


def test_another_body_under_the_key_is_refused(service: Service) -> None:
    service.ask(COUNT, key="k")
    with pytest.raises(IdempotencyConflict):
        service.ask(COUNT, key="k", epsilon="0.2")
    assert service.account("ann").balance.common == TENTH


def test_concurrent_questions_are_charged_as_far_as_the_budget_goes(service: Service) -> None:
    async def all_of_them() -> list[Any]:
        asked = [service.request(body(COUNT, fresh=True)) for _ in range(15)]
        return await asyncio.gather(*map(service.answer_query, asked), return_exceptions=True)

    results = asyncio.run(all_of_them())
    refused = [result for result in results if isinstance(result, BaseException)]
    assert len(refused) == 5
    assert {type(each) for each in refused} == {BudgetExhausted}
    assert service.account("ann").balance.common == (PICO, 0)
    assert service.sound()


@pytest.mark.parametrize("role", [Role.ADMIN, Role.VIEWER])
def test_only_analysts_ask(service: Service, role: Role) -> None:
    asked = service.request(body(COUNT), token=service.person("x", role))
    with pytest.raises(NotPermitted):
        asyncio.run(service.answer_query(asked))


def test_a_refused_question_never_reaches_the_engine(service: Service) -> None:
    spoiled = spoil(service)
    with pytest.raises(BudgetExhausted):
        service.ask(COUNT, epsilon="1.1")
    with pytest.raises(Invalid):
        service.ask({"kind": "sum", "column": "salary"})
    with pytest.raises(NoGrant):
        asyncio.run(service.answer_query(service.request({**body(COUNT), "dataset": "none"})))
    stranger = service.person("Bob", Role.ANALYST)
    for query in (COUNT, {"kind": "sum", "column": "salary"}):
        with pytest.raises(NoGrant):
            asyncio.run(service.answer_query(service.request(body(query), token=stranger)))
    with pytest.raises(NotAuthenticated):
        asyncio.run(service.answer_query(service.request(body(COUNT), token="wrong")))
    service.stores.datasets.alter("admin", "people", description=None, closed=True, reason=None)
    with pytest.raises(DatasetClosed):
        service.ask(COUNT)
    assert spoiled.asked == 0
    assert service.account("ann").balance.common == NOTHING


# Failures


@pytest.mark.parametrize(
    "fault",
    [
        EngineFailed("why"),
        *(kind("12345") for kind in (OverflowError, ValueError, TypeError, KeyError, OSError)),
        MemoryError(),
    ],
)
def test_a_failure_after_the_engine_was_asked_forfeits_with_a_constant_reply(
    service: Service, fault: Exception
) -> None:
    """There is no second draw: it would depend on the outcome of the first."""
    spoiled = spoil(service, fault)
    for _ in range(2):
        with pytest.raises(QuestionForfeited) as caught:
            service.ask(COUNT, key="k")
        assert "12345" not in caught.value.detail
        assert caught.value.__cause__ is None
    assert spoiled.asked == 1
    assert service.account("ann").balance.common == TENTH
    spoil(service)
    with pytest.raises(QuestionForfeited):
        service.ask(COUNT, key="k")
    assert service.sound()


def test_noise_that_fails_forfeits_the_charge(service: Service) -> None:
    class NoNoise(SystemRandom):
        @override
        def discrete_laplace(self, scale: float, size: int) -> list[int]:
            raise ArithmeticError("the sampler failed")

        discrete_gaussian = discrete_laplace

    service.answer_query.noise = NoNoise()
    with pytest.raises(QuestionForfeited):
        service.ask(COUNT)
    assert service.account("ann").balance.common == TENTH


def test_a_refund_goes_to_the_accounts_that_paid(service: Service) -> None:
    """Ann's group has no budget when she asks, and gets one before the refund."""
    people = service.stores.people
    people.alter("admin", "Ann", role=None, enabled=None, groups=("clinic",), reason=None)
    spoiled = spoil(service, EngineUnavailable("gone"))
    looked = spoiled.ready

    def grant_meanwhile(dataset: Dataset) -> bool:
        there = looked(dataset)
        if not there:
            service.grant("group:clinic", "1")
        return there

    spoiled.ready = grant_meanwhile  # type: ignore[method-assign]
    with pytest.raises(QuestionVoided):
        service.ask(COUNT, key="k")
    for holder in ("ann", "group:clinic", EVERYBODY):
        assert service.account(holder).balance.common == NOTHING
    assert service.sound(), "the group never paid and gets no refund"


def test_data_that_vanish_after_the_charge_cause_a_refund(service: Service) -> None:
    spoiled = spoil(service, EngineUnavailable("gone"))
    for _ in range(2):
        with pytest.raises(QuestionVoided):
            service.ask(COUNT, key="k")
    assert spoiled.asked == 0
    assert (
        service.account("ann").balance.common
        == service.account(EVERYBODY).balance.common
        == NOTHING
    )
    spoil(service)
    service.ask(COUNT, key="another")
    assert service.account("ann").balance.common == TENTH
    assert service.sound()


def test_data_that_vanish_before_a_second_attempt_cause_no_refund(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first attempt vanished, and it is unknown whether it had read data."""
    clock = LedgerClock(monkeypatch)
    spoil(service, SystemExitLike())
    with pytest.raises(SystemExitLike):
        service.ask(COUNT, key="k")
    clock.jump(61)  # its lease has ended
    spoil(service, EngineUnavailable("gone"))
    with pytest.raises(QuestionForfeited):
        service.ask(COUNT, key="k")
    assert service.account("ann").balance.common == TENTH


class SystemExitLike(BaseException):
    """A worker that vanishes: nothing is settled."""


def test_a_vanished_worker_is_followed_by_two_attempts_and_no_third(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = LedgerClock(monkeypatch)
    spoiled = spoil(service, SystemExitLike())
    for _ in range(3):
        with pytest.raises(SystemExitLike):
            service.ask(COUNT, key="k")
        clock.jump(61)
    spoil(service)
    with pytest.raises(QuestionForfeited):
        service.ask(COUNT, key="k")
    assert spoiled.asked == 3
    assert service.account("ann").balance.common == TENTH


def test_while_an_attempt_runs_its_key_gets_a_request_to_wait(service: Service) -> None:
    spoil(service, SystemExitLike())
    with pytest.raises(SystemExitLike):
        service.ask(COUNT, key="k")
    with pytest.raises(StillRunning) as caught:
        service.ask(COUNT, key="k")
    assert 0 < caught.value.retry_after_seconds <= 60


def test_a_worker_that_slept_past_its_lease_returns_the_answer_of_the_next(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, go_on = LedgerClock(monkeypatch), Event()
    spoiled = spoil(service, go_on)
    # While it is silent its lease is not renewed.
    monkeypatch.setattr(ask_query, "LeasedRun", lambda steps, limit, **_: LeasedRun(steps, limit))

    async def ask() -> Any:
        return await service.answer_query(service.request(body(COUNT), key="k"))

    async def taken_over() -> Any:
        for _ in range(10):  # its lease may have just been renewed
            clock.jump(61)
            with suppress(StillRunning):
                return await ask()
        raise AssertionError("what is silent is kept alive")

    async def both() -> list[Any]:
        first = asyncio.ensure_future(ask())
        try:
            async with asyncio.timeout(60):
                while not spoiled.asked:
                    await asyncio.sleep(0.01)
            second = await taken_over()
        finally:
            go_on.set()
        return [await first, second]

    slow, quick = asyncio.run(both())
    assert spoiled.asked == 2
    assert slow.text == quick.text
    assert service.account("ann").balance.common == TENTH
    assert service.sound()


def test_a_question_is_planned_again_if_people_change_meanwhile(service: Service) -> None:
    service.ask(COUNT)
    service.stores.people.create("admin", "Zoe", Role.VIEWER, None, None, "")
    assert not service.ask(COUNT, fresh=True).replayed


def test_a_revoked_key_stops_the_next_question(service: Service) -> None:
    service.ask(COUNT)
    (key,) = service.stores.people.keys(service.ann.analyst_id)
    service.stores.people.revoke_key("admin", key.id, None)
    with pytest.raises(NotAuthenticated):
        service.ask(COUNT, fresh=True)
    assert service.account("ann").balance.common == TENTH


def test_a_closed_dataset_answers_no_later_question(service: Service) -> None:
    first = service.ask(COUNT, key="k")
    service.stores.datasets.alter("admin", "people", description=None, closed=True, reason=None)
    with pytest.raises(DatasetClosed):
        service.ask(COUNT, fresh=True)
    assert service.ask(COUNT, key="k").text == first.text
    assert service.ask(COUNT).text == first.text
