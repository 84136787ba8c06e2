"""Statistics an analyst already paid for are answered with one commit; others with two."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from app.actions.asking.ask_query import SingleDraw
from app.errors import EngineFailed, QuestionForfeited
from app.ledger.orders import Charged, ChargeOrder, Outcome, WriterOrder
from app.mechanisms.sampling.system import SystemRandom
from tests.actions.asking.faulty_engine import COUNT, TENTH
from tests.actions.service import Service, body

MODE = {"kind": "mode", "column": "city"}
GROUPS = {"kind": "count", "group_by": ["city"]}


class Watched:
    """The real ledger, which records the orders."""

    def __init__(self, service: Service) -> None:
        self._real = service.writer
        self.orders: list[WriterOrder] = []

    async def submit(self, order: WriterOrder) -> Outcome:
        self.orders.append(order)
        return await self._real.submit(order)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def commits(self) -> list[str]:
        """Names of the orders since the last call."""
        seen, self.orders = self.orders, []
        return [
            "at once" if isinstance(o, ChargeOrder) and o.at_once else type(o).__name__
            for o in seen
        ]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    made = Service(tmp_path)
    yield made
    made.close()


@pytest.fixture
def ledger(service: Service) -> Watched:
    made = Watched(service)
    service.answer_query.ledger = made
    return made


TWO = ["ChargeOrder", "RecordOrder"]


@pytest.mark.parametrize("query", [COUNT, GROUPS, {"kind": "mean", "column": "age"}])
def test_the_first_question_takes_two_commits_and_the_next_takes_one(
    service: Service, ledger: Watched, query: dict[str, Any]
) -> None:
    first = service.ask(query)
    assert ledger.commits() == TWO
    second = service.ask(query, fresh=True)
    assert ledger.commits() == ["at once"]
    assert first.text != second.text
    assert service.account("ann").balance.common[0] == 2 * TENTH[0]
    assert service.sound()


def test_a_choice_reads_data_and_so_takes_two_commits(service: Service, ledger: Watched) -> None:
    for _ in range(2):
        service.ask(MODE, fresh=True)
        assert ledger.commits() == TWO


def test_statistics_cached_for_one_analyst_are_not_used_for_another(
    service: Service, ledger: Watched
) -> None:
    service.ask(COUNT)
    other = service.person("Bob", service.ann.role)
    service.grant("bob", "1")
    ledger.commits()
    request = service.request(body(COUNT, fresh=True), token=other)
    asyncio.run(service.answer_query(request))
    assert ledger.commits() == TWO


def test_a_caller_who_does_not_wait_gets_the_charge_first(
    service: Service, ledger: Watched
) -> None:
    service.ask(COUNT)
    ledger.commits()

    async def impatient() -> None:
        await service.answer_query(service.request(body(COUNT, fresh=True)), 0.0)
        await service.answer_query.background.stop()

    asyncio.run(impatient())
    assert ledger.commits()[0] == "ChargeOrder"


def test_noise_that_fails_forfeits_and_the_same_key_repeats_the_failure(
    service: Service, ledger: Watched
) -> None:
    service.ask(COUNT)

    class NoNoise(SystemRandom):
        @override
        def discrete_laplace(self, scale: float, size: int) -> list[int]:
            raise ArithmeticError("the sampler failed")

    service.answer_query.noise = NoNoise()
    ledger.commits()
    for _ in range(2):
        with pytest.raises(QuestionForfeited):
            service.ask(COUNT, key="k", fresh=True)
    assert ledger.commits() == ["at once", "at once"]
    assert service.account("ann").balance.common[0] == 2 * TENTH[0]
    assert service.sound()


def test_the_noise_is_drawn_once_for_all_tries_of_a_batch() -> None:
    class Counted:
        mechanism_text = "{}"

        def __init__(self, *, fails: bool) -> None:
            self.draws = 0
            self._fails = fails

        def answer(self, exact: object, noise: object) -> dict[str, Any]:
            self.draws += 1
            if self._fails:
                raise ArithmeticError
            return {"value": self.draws, "interval": None}

    charge = Charged("q_1", 1, "v", '{"charged":1}')
    fair = Counted(fails=False)
    once = SingleDraw(fair, ((1,),), SystemRandom())  # type: ignore[arg-type]
    assert once(charge) == once(charge)
    assert fair.draws == 1
    unfair = Counted(fails=True)
    never = SingleDraw(unfair, ((1,),), SystemRandom())  # type: ignore[arg-type]
    with pytest.raises(ArithmeticError):
        never(charge)
    with pytest.raises(EngineFailed):
        never(charge)
    assert unfair.draws == 1
