"""Questions that fail: forfeited after the engine was asked, refunded before, or taken over."""

import asyncio
from contextlib import suppress
from threading import Event
from typing import Any

import pytest
from typing_extensions import override

from app.actions.asking import ask_query
from app.actions.asking.leased_run import LeasedRun
from app.data.card import Dataset
from app.errors import (
    EngineFailed,
    EngineUnavailable,
    QuestionForfeited,
    QuestionVoided,
    StillRunning,
)
from app.ledger.account import EVERYBODY
from app.mechanisms.sampling.system import SystemRandom
from tests.actions.asking.faulty_engine import COUNT, NOTHING, TENTH, make_faulty
from tests.actions.clock import LedgerClock
from tests.actions.service import Service, body


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
    faulty = make_faulty(service, fault)
    for _ in range(2):
        with pytest.raises(QuestionForfeited) as caught:
            service.ask(COUNT, key="k")
        assert "12345" not in caught.value.detail
        assert caught.value.__cause__ is None
    assert faulty.asked == 1
    assert service.account("ann").balance.common == TENTH
    make_faulty(service)
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
    faulty = make_faulty(service, EngineUnavailable("gone"))
    looked = faulty.ready

    def grant_meanwhile(dataset: Dataset) -> bool:
        there = looked(dataset)
        if not there:
            service.grant("group:clinic", "1")
        return there

    faulty.ready = grant_meanwhile  # type: ignore[method-assign]
    with pytest.raises(QuestionVoided):
        service.ask(COUNT, key="k")
    for holder in ("ann", "group:clinic", EVERYBODY):
        assert service.account(holder).balance.common == NOTHING
    assert service.sound(), "the group never paid and gets no refund"


def test_data_that_vanish_after_the_charge_cause_a_refund(service: Service) -> None:
    faulty = make_faulty(service, EngineUnavailable("gone"))
    for _ in range(2):
        with pytest.raises(QuestionVoided):
            service.ask(COUNT, key="k")
    assert faulty.asked == 0
    assert (
        service.account("ann").balance.common
        == service.account(EVERYBODY).balance.common
        == NOTHING
    )
    make_faulty(service)
    service.ask(COUNT, key="another")
    assert service.account("ann").balance.common == TENTH
    assert service.sound()


def test_data_that_vanish_before_a_second_attempt_cause_no_refund(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first attempt vanished, and it is unknown whether it had read data."""
    clock = LedgerClock(monkeypatch)
    make_faulty(service, SystemExitLike())
    with pytest.raises(SystemExitLike):
        service.ask(COUNT, key="k")
    clock.jump(61)  # its lease has ended
    make_faulty(service, EngineUnavailable("gone"))
    with pytest.raises(QuestionForfeited):
        service.ask(COUNT, key="k")
    assert service.account("ann").balance.common == TENTH


class SystemExitLike(BaseException):
    """A worker that vanishes: nothing is settled."""


def test_a_vanished_worker_is_followed_by_two_attempts_and_no_third(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = LedgerClock(monkeypatch)
    faulty = make_faulty(service, SystemExitLike())
    for _ in range(3):
        with pytest.raises(SystemExitLike):
            service.ask(COUNT, key="k")
        clock.jump(61)
    make_faulty(service)
    with pytest.raises(QuestionForfeited):
        service.ask(COUNT, key="k")
    assert faulty.asked == 3
    assert service.account("ann").balance.common == TENTH


def test_while_an_attempt_runs_its_key_gets_a_request_to_wait(service: Service) -> None:
    make_faulty(service, SystemExitLike())
    with pytest.raises(SystemExitLike):
        service.ask(COUNT, key="k")
    with pytest.raises(StillRunning) as caught:
        service.ask(COUNT, key="k")
    assert 0 < caught.value.retry_after_seconds <= 60


def test_a_worker_that_slept_past_its_lease_returns_the_answer_of_the_next(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, go_on = LedgerClock(monkeypatch), Event()
    faulty = make_faulty(service, go_on)
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
                while not faulty.asked:
                    await asyncio.sleep(0.01)
            second = await taken_over()
        finally:
            go_on.set()
        return [await first, second]

    slow, quick = asyncio.run(both())
    assert faulty.asked == 2
    assert slow.text == quick.text
    assert service.account("ann").balance.common == TENTH
    assert service.sound()
