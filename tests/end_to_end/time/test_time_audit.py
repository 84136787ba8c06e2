"""An audit of a timing attack that once worked: do reply times reveal whether one row is there?

`make test` runs a few kinds of question with few samples and a wider threshold. `make audit` runs
every kind, alone and in bursts. `attack.threshold` sets the false-alarm rate of each comparison.
Every audit has a saboteur: a planted leak that it must find.
"""

from collections.abc import Callable, Iterator

import pytest

from tests.audit import cases
from tests.end_to_end.time.attack import (
    Target,
    alone,
    behind,
    bursts,
    fresh_question,
    is_seen,
    pairs,
    target,
)
from tests.end_to_end.time.questions import questions
from tests.server import World, made

GRID = {"BURSAR_RELEASE_GRID_MS": "100"}
# The suite shares its processors with other tests, so its slots are longer. `make audit` runs alone
# and uses the default.
SUITE = {**GRID, "BURSAR_SLOT_FACTOR": "4"}
KINDS = list(questions({}))
# With this many samples an AUC beyond 0.6 comes by chance once in 10,000 comparisons.
LONG = 260
LONG_BURST = 40  # questions in an attack; the suite uses shorter bursts
BURST = 16

# A descent takes longer if the row exists. Slots must hide this.
ROW_TAKES_TIME = """
import time
from app.mechanisms.learning.gradient_descent import GradientRelease
learn = GradientRelease.learn
def slowly(self, exact, rows, noise, reached):
    if any(len(batch) for batch in rows):
        time.sleep({seconds})
    return learn(self, exact, rows, noise, reached)
GradientRelease.learn = slowly
"""
# Replies leave when their work is done, as if there were no slots. With slots they leave after 0.2
# s, which hides this delay.
NO_SLOTS = (
    ROW_TAKES_TIME.format(seconds=0.15)
    + """
from app.actions.asking import ask_query as answer_query
from app.ledger.leaving import AT_ONCE
answer_query.Leaving = lambda *seconds: AT_ONCE
"""
)
# A delay that a slot hides but that adds up in a queue, and an overrun that no slot hides.
SHORT_DELAY, OVERRUN = 0.03, 0.6
# Two threads work through the queue in real time, so a delay shows in every later reply.
REAL_QUEUE = (
    ROW_TAKES_TIME.format(seconds=SHORT_DELAY)
    + """
from app.actions.asking import ask_query as answer_query
from app.actions.scheduling import slots
from app.ledger.leaving import Leaving
arrive = slots.Line.arrive
def arrive_in_real_time(self, analyst, seconds):
    self.threads._threads = self.threads._threads_each = 2
    return slots.Turn(self.threads, analyst)
slots.Line.arrive = arrive_in_real_time
answer_query.Leaving = lambda grid_seconds, *first: Leaving(grid_seconds)
"""
)
# Slots are kept, but a lane is free only when its work is done: an overrun delays all later
# replies.
OVERRUN_DELAYS = (
    ROW_TAKES_TIME.format(seconds=OVERRUN)
    + """
import asyncio
from app.actions.scheduling import slots
start = slots.Slot.start
def start_and_hold(self, work):
    loop, line, ticket = asyncio.get_running_loop(), self._line, self._ticket
    line._clock._free_at[ticket.lane] = loop.time() + 1000
    def release():
        line._clock._free_at[ticket.lane] = loop.time()
        line._advance(loop.time())
    future = start(self, work)
    future.add_done_callback(lambda _: loop.call_at(max(ticket.ends, loop.time()), release))
    return future
slots.Slot.start = start_and_hold
"""
)


@pytest.fixture(scope="module")
def live_target(
    peopled: object, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Target]:
    world: World = peopled("sqlite", tmp_path_factory.mktemp("timing") / "ledger")  # type: ignore[operator]
    world.serve(**(GRID if is_audit(request) else SUITE))
    yield target(world)
    world.ledger.stop()


@pytest.fixture
def sabotaged(
    peopled: object, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Target]]:
    """Start a server with a planted bug."""
    world: World = peopled("sqlite", tmp_path_factory.mktemp("sabotaged") / "ledger")  # type: ignore[operator]

    def start(sabotage: str) -> Target:
        world.serve(sabotage=sabotage, **SUITE)
        return target(world)

    yield start
    world.ledger.stop()


def samples(usual: int, long: int, request: pytest.FixtureRequest) -> int:
    """Number of samples: few in the suite, enough for AUC_MAX itself in `make audit`."""
    return long if is_audit(request) else usual


def is_audit(request: pytest.FixtureRequest) -> bool:
    return request.config.pluginmanager.has_plugin("tests.audit")


def check(measured: float, number: int, name: str) -> None:
    print(f"{name}: AUC {measured:.3f} of {number} a side")
    assert not is_seen(measured, number), f"{name}: the time reveals the row, AUC {measured:.3f}"


@pytest.mark.invariant("I22")
@pytest.mark.parametrize("kind", cases(KINDS, {"count", "logistic_regression", "smooth median"}))
def test_the_time_of_a_single_question_reveals_nothing(
    live_target: Target, kind: str, request: pytest.FixtureRequest
) -> None:
    number = samples(20, LONG, request)
    check(alone(live_target, kind, number), number, kind)


@pytest.mark.invariant("I22")
@pytest.mark.parametrize("kind", cases(KINDS, {"logistic_regression"}))
def test_the_times_of_a_burst_reveal_nothing(
    live_target: Target, kind: str, request: pytest.FixtureRequest
) -> None:
    number, size = samples(9, 60, request), samples(BURST, LONG_BURST, request)
    mean, last = bursts(live_target, kind, number, size)
    check(mean, number, f"mean of {size} {kind}")
    check(last, number, f"last of {size} {kind}")


@pytest.mark.audit
@pytest.mark.invariant("I22")
def test_the_time_of_a_large_workload_reveals_nothing(live_target: Target) -> None:
    """500 predicates of 12 parts each, on one row, once had an AUC of 0.77 without any queue."""
    check(alone(live_target, "large workload", 30), 30, "large workload")


@pytest.mark.invariant("I22")
def test_slots_hide_work_that_takes_longer_with_the_row(
    sabotaged: Callable[[str], Target],
) -> None:
    """The sabotage makes the work slower if the row exists and leaves the slots intact."""
    live_target = sabotaged(ROW_TAKES_TIME.format(seconds=SHORT_DELAY))
    check(alone(live_target, "logistic_regression", 20), 20, "a short delay alone")
    mean, last = bursts(live_target, "logistic_regression", 9, BURST)
    check(mean, 9, "a short delay each, mean of a burst")
    check(last, 9, "a short delay each, last of a burst")


@pytest.mark.invariant("I22")
def test_an_overrun_does_not_delay_the_questions_behind_it(
    sabotaged: Callable[[str], Target],
) -> None:
    live_target = sabotaged(ROW_TAKES_TIME.format(seconds=OVERRUN))
    mean, last = behind(live_target, "logistic_regression", 9, BURST)
    check(mean, 9, "behind overruns, mean")
    check(last, 9, "behind overruns, last")


@pytest.mark.saboteur
@pytest.mark.invariant("I22")
def test_saboteur_replies_that_leave_when_the_work_is_done_are_detected(
    sabotaged: Callable[[str], Target],
) -> None:
    assert is_seen(alone(sabotaged(NO_SLOTS), "logistic_regression", 30), 30)


@pytest.mark.saboteur
@pytest.mark.invariant("I22")
def test_saboteur_a_queue_in_real_time_is_detected(sabotaged: Callable[[str], Target]) -> None:
    """The delay is the one that slots hide in the test above."""
    seen = bursts(sabotaged(REAL_QUEUE), "logistic_regression", 9, BURST)
    assert any(is_seen(measured, 9) for measured in seen), seen


@pytest.mark.saboteur
@pytest.mark.invariant("I22")
def test_saboteur_an_overrun_that_delays_later_questions_is_detected(
    sabotaged: Callable[[str], Target],
) -> None:
    seen = behind(sabotaged(OVERRUN_DELAYS), "logistic_regression", 9, BURST)
    assert any(is_seen(measured, 9) for measured in seen), seen


# Caches and grants: requests that cost nothing


def test_a_preview_does_not_reveal_that_another_analyst_asked_the_same(live_target: Target) -> None:
    """Planning takes time. A cache shared by all analysts would save it."""
    world, number = live_target.world, 20
    other = world.person()
    budget = {"currency": "renyi", "epsilon": 1_000_000, "delta": 0.01}
    made(world.admin.put(f"/v1/datasets/{live_target.with_row}/budgets/{other.name}", json=budget))
    mine, theirs = world.client(live_target.analyst), world.client(other)
    questions = [fresh_question("cdf", live_target.with_row) for _ in range(2 * number)]
    for place, question in enumerate(questions):
        question["privacy"] = {"epsilon": 0.001 + place / 10_000}
    for question in questions[::2]:  # every other question, since planning depends on epsilon
        made(theirs.post("/v1/queries/preview", json=question))
    asked_before, new = iter(questions[::2]), iter(questions[1::2])
    measured = pairs(
        number,
        lambda: made(mine.post("/v1/queries/preview", json=next(asked_before))),
        lambda: made(mine.post("/v1/queries/preview", json=next(new))),
    )
    check(measured, number, "preview of what another has asked")


@pytest.mark.saboteur
def test_saboteur_a_plan_cache_shared_by_all_analysts_is_detected(
    sabotaged: Callable[[str], Target],
) -> None:
    """Planning is slowed down so that a busy machine does not hide it."""
    sabotage = """
import time
from app.planning import plan
key, make = plan._key, plan.make_plan
def make_slowly(*given):
    time.sleep(0.2)
    return make(*given)
plan.make_plan = make_slowly
plan._key = lambda analyst_id, *rest: key("everybody", *rest)
import app.caches, contextlib
app.caches._OWNER = type("Shared", (), {"get": lambda self: "", "set": lambda self, to: None,
                                        "reset": lambda self, token: None})()
"""
    live_target = sabotaged(sabotage)
    with pytest.raises(AssertionError, match="the time reveals"):
        test_a_preview_does_not_reveal_that_another_analyst_asked_the_same(live_target)


@pytest.mark.parametrize("path", ["/v1/queries", "/v1/queries/preview"])
def test_without_a_grant_known_and_unknown_names_take_equally_long(
    live_target: Target, path: str
) -> None:
    stranger = live_target.world.client(live_target.world.person())
    number = 60

    def refused(dataset: str) -> None:
        body = fresh_question("cdf", dataset)
        assert stranger.post(path, json=body).status_code == 403

    refused("nothing")
    measured = pairs(number, lambda: refused(live_target.with_row), lambda: refused("no-such-name"))
    check(measured, number, f"known against unknown names at {path}")
