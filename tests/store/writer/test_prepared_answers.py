"""A charge with a prepared answer: one commit stores both or neither."""

import asyncio

import pytest

from app.errors import BudgetExhausted, StillRunning
from app.ledger.orders import Charged, ChargeOrder, PreparedAnswer, RecordOrder, Settled, State
from app.store.writer.writer import Writer
from tests.store.ledgers import Ledger
from tests.store.writer.test_writer import faults, writer

__all__ = ["faults", "writer"]


class Draws:
    """A source of answers that differ with each draw, which records the charges drawn for."""

    def __init__(self, *, fails: bool = False) -> None:
        self.charges: list[Charged] = []
        self._fails = fails

    def __call__(self, charge: Charged) -> str:
        self.charges.append(charge)
        if self._fails:
            raise ArithmeticError("the text of a failure, with a secret")
        return f"answer {len(self.charges)} for {charge.charged}"


def at_once(
    ledger: Ledger, draws: Draws, *, grid_seconds: float = 0.0, **more: object
) -> ChargeOrder:
    return ledger.order(**more)._replace(at_once=PreparedAnswer(draws, grid_seconds))  # type: ignore[arg-type]


def test_charge_and_answer_are_stored_together_and_returned_as_stored(ledger: Ledger) -> None:
    draws = Draws()
    order = at_once(ledger, draws, tenths=3)
    (settled,) = ledger.settle(order)
    (charge,) = draws.charges
    assert settled == Settled(order.charge_id, State.ANSWERED, f"answer 1 for {charge.charged}")
    assert ledger.state(order) == (State.ANSWERED, settled.answer)
    assert (ledger.spent(0), ledger.spent(None)) == (3, 3)
    assert ledger.verified().sound
    (again,) = ledger.settle(order._replace(charge_id="q_another"))
    assert again == settled._replace(replayed=True)
    assert len(draws.charges) == 1


def test_a_refused_charge_draws_nothing(ledger: Ledger) -> None:
    before = ledger.everything()
    draws = Draws()
    (refused,) = ledger.settle(at_once(ledger, draws, tenths=11))
    assert isinstance(refused, BudgetExhausted)
    assert draws.charges == []
    assert ledger.everything() == before


def test_a_failed_draw_forfeits_its_charge(ledger: Ledger) -> None:
    order = at_once(ledger, Draws(fails=True), tenths=2)
    other = ledger.order()
    failed, fine = ledger.settle(order, other)
    assert failed == Settled(order.charge_id, State.FORFEITED, None)
    assert isinstance(fine, Charged)
    assert ledger.state(order) == (State.FORFEITED, None)
    assert ledger.spent() == 3
    assert ledger.verified().sound
    fair = order._replace(charge_id="q_another", at_once=PreparedAnswer(Draws(), 0.0))
    (again,) = ledger.settle(fair)
    assert again == Settled(order.charge_id, State.FORFEITED, None, replayed=True)


def test_nothing_reveals_a_prepared_answer_before_its_grid_point(ledger: Ledger) -> None:
    grid_seconds = 600.0  # longer than this test
    order = at_once(ledger, Draws(), grid_seconds=grid_seconds, lease_seconds=0.0)
    (settled,) = ledger.settle(order)
    assert isinstance(settled, Settled)
    assert settled.wait_seconds == pytest.approx(grid_seconds)
    (early,) = ledger.settle(order._replace(charge_id="q_another"))
    assert isinstance(early, StillRunning)
    plain = ledger.order(tenths=1, fresh=False)
    (reused,) = ledger.settle(plain)
    assert isinstance(reused, Charged), "an answer that is not published yet is not reused either"


def test_no_attempt_can_replace_a_prepared_answer(ledger: Ledger) -> None:
    order = at_once(ledger, Draws())
    (settled,) = ledger.settle(order)
    (late,) = ledger.settle(RecordOrder(order.charge_id, 1, "another answer"))
    assert late == settled


@pytest.mark.parametrize(
    "coming",
    [
        ["lost reply"],
        ["lost before"],
        ["lost reply", "lost before", "lost reply"],
        ["clash"],
        ["clash", "clash", "lost reply"],
    ],
)
def test_after_an_unknown_commit_the_reply_is_the_stored_answer(
    ledger: Ledger,
    faults: list[str],  # the fixture
    writer: Writer,
    coming: list[str],
) -> None:
    faults += coming
    orders = [at_once(ledger, Draws()) for _ in range(5)]

    async def together() -> list[object]:
        return list(await asyncio.gather(*(writer.submit(order) for order in orders)))

    results = asyncio.run(together())
    for order, result in zip(orders, results, strict=True):
        assert isinstance(result, Settled)
        assert (result.state, result.answer) == ledger.state(order)
        assert result.state is State.ANSWERED
    assert ledger.spent() == 5
    assert ledger.verified().sound
