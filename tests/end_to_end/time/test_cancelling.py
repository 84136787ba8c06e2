"""Cancelling over HTTP, on both stores: charged if the engine was asked, given back if it provably
was not, and the same from whichever server it is said."""

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from threading import Barrier

import httpx
import pytest

from tests.conftest import Counts
from tests.holding import EndlessStatements, HeldRuns
from tests.server import (
    Json,
    Person,
    World,
    ask,
    count,
    made,
    new_key,
    wait_until,
    when_settled,
)

PRICE = Decimal("0.25")
QUESTION = count("people", float(PRICE))
LATER = "respond-async"
LEARNERS = 2  # so many runs go on at once; others wait
STEPS = 100
HOUR = 3600  # a lease that does not end, so that no cancellation takes effect because it did
RHO = "0.05"
GRANT: Json = {"currency": "zcdp", "epsilon": 5, "delta": "1e-6"}


def learning(world: World, sabotage: str = "") -> tuple[str, Person]:
    """A dataset on which runs go halfway and stay there."""
    runs = HeldRuns(world.ledger.folder, STEPS // 2)
    world.serve(lease_seconds=HOUR, sabotage=runs.sabotage + sabotage)
    person, dataset = world.person(), world.dataset()
    for holder in ("*", person.name):
        made(world.admin.put(f"/v1/datasets/{dataset}/budgets/{holder}", json=GRANT))
    return dataset, person


def run(dataset: str, steps: int = STEPS) -> Json:
    return {
        "dataset": dataset,
        "query": {"kind": "logistic_regression", "outcome": "smoker", "features": ["age"]},
        "privacy": {"rho": RHO},
        "mechanism": {"kind": "noisy_gradient_descent", "steps": steps},
    }


def begun(client: httpx.Client, dataset: str, steps: int = STEPS) -> tuple[str, str]:
    """A run in the background: where it is, and its key."""
    key = new_key()
    reply = ask(client, run(dataset, steps), key, LATER)
    assert reply.status_code == 202, reply.text
    return reply.headers["Location"], key


def has_moved(client: httpx.Client, place: str) -> bool:
    progress = made(client.get(place))["progress"]
    return progress is not None and progress["step"] > 0


def rho(world: World, dataset: str, holder: str) -> Decimal:
    return Decimal(repr(world.budget(dataset, holder)["spent"]["rho"]))


# Once the engine was asked


@pytest.mark.invariant("I4")
@pytest.mark.parametrize("elsewhere", [False, True], ids=["same server", "another server"])
def test_a_run_that_is_cancelled_ends_and_stays_charged(world: World, elsewhere: bool) -> None:
    dataset, person = learning(world)
    client = world.client(person)
    place, key = begun(client, dataset)
    wait_until(lambda: has_moved(client, place), 60, "the run did not move")
    other = client if not elsewhere else world.ledger.serve(elsewhere=True).client(person.key)
    reply = other.delete(place)
    assert reply.status_code == 200, reply.text
    assert set(reply.json()) == {"id", "status", "detail"}
    assert reply.json()["status"] == "forfeited"
    assert "stays charged" in reply.json()["detail"]
    assert other.delete(place).content == reply.content  # again

    item = made(client.get(place))
    assert (item["status"], item["progress"], item["answer"]) == ("forfeited", None, None)
    assert item["asked_at"] < item["cancel_asked_at"] <= item["settled_at"]
    again = ask(client, run(dataset), key)
    assert (again.status_code, again.json()["type"]) == (503, "/problems/question-forfeited")
    assert rho(world, dataset, person.name) == rho(world, dataset, "*") == Decimal(RHO)
    assert world.entries(dataset, "void") == []
    # Its thread is free again: as many runs go on at once as there are threads.
    wanted = ask(client, run(dataset, 20), new_key())
    assert wanted.status_code == 200, wanted.text
    for place in [begun(client, dataset, STEPS + 1 + i)[0] for i in range(LEARNERS)]:
        wait_until(lambda place=place: has_moved(client, place), 60, "it waits")  # type: ignore[misc]
    world.must_be_sound()


def test_whoever_still_waits_for_a_cancelled_question_hears_the_constant_failure(
    world: World,
) -> None:
    dataset, person = learning(world)
    client = world.client(person)
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask, world.client(person), run(dataset), new_key())
        wait_until(lambda: bool(made(client.get("/v1/queries"))["items"]), 20, "not begun")
        (item,) = made(client.get("/v1/queries"))["items"]
        wait_until(lambda: has_moved(client, f"/v1/queries/{item['id']}"), 60, "it did not move")
        assert made(client.delete(f"/v1/queries/{item['id']}"))["status"] == "forfeited"
        reply = asking.result()
    assert (reply.status_code, reply.json()["type"]) == (503, "/problems/question-forfeited")


def test_a_statement_that_runs_is_interrupted(world: World) -> None:
    statements = EndlessStatements(world.ledger.folder)
    world.serve(lease_seconds=HOUR, sabotage=statements.sabotage)
    client = world.client("ada")
    place = ask(client, QUESTION, new_key(), LATER).headers["Location"]
    wait_until(lambda: statements.begun, 60, "the statement did not begin")
    assert made(client.delete(place))["status"] == "forfeited"
    wait_until(lambda: statements.interrupted, 60, "the statement runs on")
    statements.let_go()
    assert world.spent("people", "ada") == PRICE
    assert made(ask(client, count("people", 0.1), new_key()))["status"] == "answered"


GIVES_BACK_WHAT_HAS_BEGUN = """
from app.actions.asking.ask_query import AnswerQuery
async def give_back_instead(self, begun, leaving):
    return await self._give_back(begun, "nothing was read, says the bug", leaving)
AnswerQuery._lose = give_back_instead
"""


@pytest.mark.invariant("I4")
@pytest.mark.saboteur
def test_saboteur_a_server_that_gives_back_what_was_read_is_caught(world: World) -> None:
    dataset, person = learning(world, GIVES_BACK_WHAT_HAS_BEGUN)
    client = world.client(person)
    place, _ = begun(client, dataset)
    wait_until(lambda: has_moved(client, place), 60, "the run did not move")
    assert made(client.delete(place))["status"] == "voided"
    assert rho(world, dataset, person.name) == 0


# Before the engine was asked


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same server", "another server"])
def test_a_question_that_still_waits_for_a_thread_is_given_back(
    world: World, elsewhere: bool
) -> None:
    dataset, person = learning(world)
    client = world.client(person)
    busy = [begun(client, dataset, STEPS + 1 + i)[0] for i in range(LEARNERS)]
    for place in busy:
        wait_until(lambda place=place: has_moved(client, place), 60, "it did not move")  # type: ignore[misc]
    place, key = begun(client, dataset)
    assert rho(world, dataset, person.name) == 3 * Decimal(RHO)
    other = client if not elsewhere else world.ledger.serve(elsewhere=True).client(person.key)
    reply = other.delete(place)
    assert reply.status_code == 200, reply.text
    assert reply.json()["status"] == "voided"
    assert "given back" in reply.json()["detail"]
    assert other.delete(place).content == reply.content
    (entry,) = world.entries(dataset, "void")
    assert entry["body"]["charge"] == reply.json()["id"]
    assert entry["body"]["reason"] == "cancelled before any data were read"
    assert rho(world, dataset, person.name) == rho(world, dataset, "*") == 2 * Decimal(RHO)
    again = ask(client, run(dataset), key)
    assert (again.status_code, again.json()["type"]) == (503, "/problems/question-voided")
    for place in busy:
        assert made(client.delete(place))["status"] == "forfeited"
    assert rho(world, dataset, "*") == 2 * Decimal(RHO)
    world.must_be_sound()


# Who may, and what is settled


def test_unknown_and_somebody_elses_look_alike_and_only_the_asker_and_an_admin_may(
    world: World,
) -> None:
    world.serve(fault=world.ledger.hold("F6"), lease_seconds=HOUR)
    place = ask(world.client("ada"), QUESTION, new_key(), LATER).headers["Location"]
    bob = world.client("bob")
    replies = [bob.delete(place), bob.delete("/v1/queries/q_nothing"), bob.get(place)]
    assert {reply.status_code for reply in replies} == {404}
    assert len({reply.content for reply in replies}) == 1
    assert world.client("vera").delete(place).status_code == 403
    assert world.server.client().delete(place).status_code == 401
    assert made(world.client("ada").get(place))["cancel_asked_at"] is None
    told = made(world.admin.delete(place))
    assert told["status"] == "forfeited"
    assert made(world.client("ada").get(place))["status"] == "forfeited"


def test_what_is_settled_stays_as_it_is(live_on_each: World) -> None:
    world = live_on_each
    person = world.person()
    dataset = world.open_dataset(person)
    client, key = world.client(person), new_key()
    answer = ask(client, count(dataset), key)
    place = f"/v1/queries/{answer.json()['id']}"
    before = client.get(place).content
    reply = client.delete(place)
    assert (reply.status_code, reply.json()["status"]) == (200, "answered")
    assert "nothing was changed" in reply.json()["detail"]
    assert client.get(place).content == before
    assert ask(client, count(dataset), key).content == answer.content


def test_an_answer_that_is_stored_and_not_told_is_cancelled_as_if_it_were_at_work(
    world: World,
) -> None:
    """The answer of the grid point at which the cancellation takes effect stands, whether it was
    stored before or after: so nothing tells which it was."""
    world.serve(BURSAR_RELEASE_GRID_MS="60000", BURSAR_ANSWER_SECONDS=str(HOUR))
    client = world.client("ada")
    place = ask(client, QUESTION, new_key(), LATER).headers["Location"]

    def charge(column: str) -> object:
        ((found,),) = world.ledger.rows(f"SELECT {column} FROM charges")
        return found

    wait_until(lambda: charge("state") == "answered", 50, "it is not stored")
    with ThreadPoolExecutor(1) as pool:
        cancelling = pool.submit(client.delete, place)
        wait_until(lambda: charge("cancel_asked_at") is not None, 50, "nobody wants to cancel")
        assert not cancelling.done()
        # Its point comes now, and not in a minute.
        world.ledger.change("UPDATE charges SET settled_at = created_at")
        reply = cancelling.result()
    assert (reply.status_code, reply.json()["status"]) == (200, "answered")
    assert made(client.get(place))["cancel_asked_at"] is not None


# Races


@pytest.mark.invariant("I4")
def test_cancelling_races_with_answering_and_every_charge_is_settled_once(
    world: World, counts: Counts
) -> None:
    """Half of the questions are cancelled at once, from another server."""
    world.serve(lease_seconds=3)
    second = world.ledger.serve(elsewhere=True, lease_seconds=3)
    person = world.person()
    dataset = world.open_dataset(person, epsilon=100)
    asking, cancelling = world.client(person), second.client(person.key)
    start = Barrier(2)
    places: list[str] = []

    def cancel(place: str) -> str:
        start.wait()
        return str(made(cancelling.delete(place))["status"])

    with ThreadPoolExecutor(1) as pool:
        told = []
        for i in range(24):
            question = count(dataset, "0.1", fresh=True)
            question["query"]["where"] = {"column": "age", "op": "<", "value": i}
            places.append(ask(asking, question, new_key(), LATER).headers["Location"])
            if i % 2:
                cancelled = pool.submit(cancel, places[-1])
                start.wait()
                told.append((places[-1], cancelled.result()))
    states = {place: when_settled(asking, place).json() for place in places}
    for place, status in told:
        assert states[place]["status"] == status
    for item in states.values():
        assert (item["status"] == "answered") == (item["answer"] is not None)
    voided = sum(item["status"] == "voided" for item in states.values())
    assert len(world.entries(dataset, "void")) == voided
    assert world.spent(dataset, person.name) == (len(places) - voided) * Decimal("0.1")
    counts("questions cancelled while they were answered", len(told))
    world.must_be_sound()
