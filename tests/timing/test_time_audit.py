"""The attack that once worked, as an audit: does the time of replies show whether one row is there?

`make test` runs a few kinds of question with few samples and a wider threshold, `make audit` every
kind, alone and in bursts. The false-alarm rate of each comparison is that of `attack.threshold`.
Every audit has a saboteur: a planted leak that it must find.
"""

from collections.abc import Iterator

import pytest

from tests.audit import cases
from tests.server import World, made
from tests.timing.attack import Target, alone, asked, bursts, is_seen, pairs, target
from tests.timing.questions import questions

GRID = {"BURSAR_RELEASE_GRID_MS": "100"}
KINDS = list(questions({}))
BURST = 40

# Replies leave when their work is done, as with no slots at all, and descents skip empty batches.
NO_SLOTS = """
from app.actions.slots import Slot
from app.mechanisms import clipped_gradients
from app.mechanisms.gradient_descent import GradientRelease
Slot.first_seconds = lambda self, grid_seconds: 0.001
clipped_gradients.COLUMNS_MIN = 1
GradientRelease._one_at_least = lambda self, rows: (batch for batch in rows if len(batch))
"""
# The queue is worked off by real time, which counts towards every reply behind it.
REAL_QUEUE = (
    NO_SLOTS
    + """
import math
from app.actions import slots
arrive = slots.Line.arrive
slots.Line.arrive = lambda self, analyst, seconds: arrive(self, analyst, math.inf)
Slot.first_seconds = lambda self, grid_seconds: grid_seconds
from app.ledger.leaving import Leaving
Leaving.rung = lambda self, seconds: -(-seconds // self.grid_seconds) * self.grid_seconds
"""
)
# Work about the row overruns its slot, and its lane is held until the work is done.
OVERRUN_DELAYS = """
import time
from app.actions import slots
from app.mechanisms.gradient_descent import GradientRelease
learn = GradientRelease.learn
def slowly(self, exact, rows, noise, reached):
    if any(len(batch) for batch in rows):
        time.sleep(0.2)
    return learn(self, exact, rows, noise, reached)
GradientRelease.learn = slowly
def done(self, ticket):
    import asyncio
    now = asyncio.get_running_loop().time()
    self._clock.release(ticket, max(now, ticket.ends))
    self._advance(now)
slots.Line.done = done
"""


@pytest.fixture(scope="module")
def found(peopled: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    world: World = peopled("sqlite", tmp_path_factory.mktemp("timing") / "ledger")  # type: ignore[operator]
    world.serve(**GRID)
    yield target(world)
    world.ledger.stop()


def sabotaged(world: World, sabotage: str) -> Target:
    world.serve(sabotage=sabotage, **GRID)
    return target(world)


def samples(usual: int, long: int, request: pytest.FixtureRequest) -> int:
    """Few in the suite, enough for AUC_MAX itself in `make audit`."""
    return long if request.config.pluginmanager.has_plugin("tests.audit") else usual


def check(measured: float, number: int, name: str) -> None:
    print(f"{name}: AUC {measured:.3f} of {number} a side")
    assert not is_seen(measured, number), f"{name}: the time shows it, AUC {measured:.3f}"


@pytest.mark.invariant("I22")
@pytest.mark.parametrize("kind", cases(KINDS, {"count", "logistic_regression", "smooth median"}))
def test_a_single_question_shows_nothing_by_its_time(
    found: Target, kind: str, request: pytest.FixtureRequest
) -> None:
    number = samples(20, 500, request)
    check(alone(found, kind, number), number, kind)


@pytest.mark.invariant("I22")
@pytest.mark.parametrize("kind", cases(KINDS, {"logistic_regression"}))
def test_a_burst_shows_nothing_by_its_times(
    found: Target, kind: str, request: pytest.FixtureRequest
) -> None:
    number = samples(10, 60, request)
    mean, last = bursts(found, kind, number, BURST)
    check(mean, number, f"mean of {BURST} {kind}")
    check(last, number, f"last of {BURST} {kind}")


@pytest.mark.audit
@pytest.mark.invariant("I22")
def test_a_large_workload_shows_nothing_by_its_time(found: Target) -> None:
    """500 predicates of 12 parts each, about one row: once an AUC of 0.77 without any queue."""
    check(alone(found, "large workload", 30), 30, "large workload")


@pytest.mark.saboteur
@pytest.mark.invariant("I22")
def test_saboteur_replies_that_leave_when_the_work_is_done_are_seen(world: World) -> None:
    found = sabotaged(world, NO_SLOTS)
    assert is_seen(alone(found, "logistic_regression", 12), 12)


@pytest.mark.saboteur
@pytest.mark.invariant("I22")
def test_saboteur_a_queue_by_real_time_is_seen(world: World) -> None:
    found = sabotaged(world, REAL_QUEUE)
    assert any(is_seen(each, 9) for each in bursts(found, "logistic_regression", 9, BURST))


@pytest.mark.saboteur
@pytest.mark.invariant("I22")
def test_saboteur_an_overrun_that_delays_those_behind_it_is_seen(world: World) -> None:
    found = sabotaged(world, OVERRUN_DELAYS)
    assert any(is_seen(each, 9) for each in bursts(found, "logistic_regression", 9, BURST))


# Caches and grants: free requests


def test_a_preview_does_not_show_that_somebody_else_has_asked_the_same(found: Target) -> None:
    """Planning a cdf takes a tenth of a second; with one cache for all it would take none."""
    world, number = found.world, 12
    other = world.person()
    budget = {"currency": "renyi", "epsilon": 1_000_000, "delta": 0.01}
    made(world.admin.put(f"/v1/datasets/{found.with_row}/budgets/{other.name}", json=budget))
    mine, theirs = world.client(found.analyst), world.client(other)
    questions = [asked("cdf", found.with_row) for _ in range(2 * number)]
    for place, question in enumerate(questions):
        question["privacy"] = {"epsilon": 0.001 + place / 10_000}
    for question in questions[:number]:
        made(theirs.post("/v1/queries/preview", json=question))
    asked_before, new = iter(questions[:number]), iter(questions[number:])
    measured = pairs(
        number,
        lambda: made(mine.post("/v1/queries/preview", json=next(asked_before))),
        lambda: made(mine.post("/v1/queries/preview", json=next(new))),
    )
    check(measured, number, "preview of what another has asked")


@pytest.mark.saboteur
def test_saboteur_one_plan_cache_for_all_is_seen(world: World) -> None:
    sabotage = """
from app.planning import plan
key = plan._key
plan._key = lambda analyst_id, *rest: key("everybody", *rest)
import app.caches, contextlib
app.caches._OWNER = type("Shared", (), {"get": lambda self: "", "set": lambda self, to: None,
                                        "reset": lambda self, token: None})()
"""
    found = sabotaged(world, sabotage)
    with pytest.raises(AssertionError, match="the time shows it"):
        test_a_preview_does_not_show_that_somebody_else_has_asked_the_same(found)


@pytest.mark.parametrize("path", ["/v1/queries", "/v1/queries/preview"])
def test_without_a_grant_a_known_name_takes_as_long_as_an_unknown_one(
    found: Target, path: str
) -> None:
    stranger = found.world.client(found.world.person())
    number = 60

    def refused(dataset: str) -> None:
        body = asked("cdf", dataset)
        assert stranger.post(path, json=body).status_code == 403

    refused("nothing")
    measured = pairs(number, lambda: refused(found.with_row), lambda: refused("no-such-name"))
    check(measured, number, f"known against unknown names at {path}")
