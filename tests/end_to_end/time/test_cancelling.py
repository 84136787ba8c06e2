"""Cancelling over HTTP, on both stores.

A question is charged if the engine was asked and refunded if it provably was not. The outcome does
not depend on the server that receives the cancellation.
"""

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from threading import Barrier

import httpx
import pytest

from tests.bursard import wait_until
from tests.conftest import Counts
from tests.holding import EndlessStatements, HeldRuns
from tests.server import Json, Person, World, ask, count, made, new_key, when_settled

PRICE = Decimal("0.25")
QUESTION = count("people", float(PRICE))
LATER = "respond-async"
LEARNERS = 2  # runs at once; others wait
STEPS = 100
HOUR = 3600  # a lease too long to end, so it cannot cause a cancellation to take effect
RHO = "0.05"
GRANT: Json = {"currency": "zcdp", "epsilon": 5, "delta": "1e-6"}


def learning(world: World, sabotage: str = "") -> tuple[str, Person]:
    """A dataset on which runs stop halfway."""
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
    """Start a run in the background; return its URL and its key."""
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
def test_a_cancelled_run_ends_and_stays_charged(world: World, elsewhere: bool) -> None:
    dataset, person = learning(world)
    client = world.client(person)
    url, key = begun(client, dataset)
    wait_until(lambda: has_moved(client, url), 60, "the run made no progress")
    other = client if not elsewhere else world.ledger.serve(elsewhere=True).client(person.key)
    reply = other.delete(url)
    assert reply.status_code == 200, reply.text
    assert set(reply.json()) == {"id", "status", "detail"}
    assert reply.json()["status"] == "forfeited"
    assert "stays charged" in reply.json()["detail"]
    assert other.delete(url).content == reply.content  # repeated

    item = made(client.get(url))
    assert (item["status"], item["progress"], item["answer"]) == ("forfeited", None, None)
    assert item["asked_at"] < item["cancel_asked_at"] <= item["settled_at"]
    again = ask(client, run(dataset), key)
    assert (again.status_code, again.json()["type"]) == (503, "/problems/question-forfeited")
    assert rho(world, dataset, person.name) == rho(world, dataset, "*") == Decimal(RHO)
    assert world.entries(dataset, "void") == []
    # Its thread is free again: as many runs proceed at once as there are threads.
    wanted = ask(client, run(dataset, 20), new_key())
    assert wanted.status_code == 200, wanted.text
    for url in [begun(client, dataset, STEPS + 1 + i)[0] for i in range(LEARNERS)]:
        wait_until(lambda url=url: has_moved(client, url), 60, "the run still waits")  # type: ignore[misc]
    world.must_be_sound()


def test_a_caller_who_waits_for_a_cancelled_question_gets_the_constant_failure(
    world: World,
) -> None:
    dataset, person = learning(world)
    client = world.client(person)
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask, world.client(person), run(dataset), new_key())
        wait_until(lambda: bool(made(client.get("/v1/queries"))["items"]), 20, "not begun")
        (item,) = made(client.get("/v1/queries"))["items"]
        wait_until(
            lambda: has_moved(client, f"/v1/queries/{item['id']}"), 60, "the run made no progress"
        )
        assert made(client.delete(f"/v1/queries/{item['id']}"))["status"] == "forfeited"
        reply = asking.result()
    assert (reply.status_code, reply.json()["type"]) == (503, "/problems/question-forfeited")


def test_a_running_statement_is_interrupted(world: World) -> None:
    statements = EndlessStatements(world.ledger.folder)
    world.serve(lease_seconds=HOUR, sabotage=statements.sabotage)
    client = world.client("ada")
    place = ask(client, QUESTION, new_key(), LATER).headers["Location"]
    wait_until(lambda: statements.begun, 60, "the statement did not start")
    assert made(client.delete(place))["status"] == "forfeited"
    wait_until(lambda: statements.interrupted, 60, "the statement was not interrupted")
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
def test_saboteur_a_server_that_refunds_a_query_that_was_read_is_caught(world: World) -> None:
    dataset, person = learning(world, GIVES_BACK_WHAT_HAS_BEGUN)
    client = world.client(person)
    place, _ = begun(client, dataset)
    wait_until(lambda: has_moved(client, place), 60, "the run made no progress")
    assert made(client.delete(place))["status"] == "voided"
    assert rho(world, dataset, person.name) == 0


# Before the engine was asked


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same server", "another server"])
def test_a_question_that_waits_for_a_thread_is_refunded(world: World, elsewhere: bool) -> None:
    dataset, person = learning(world)
    client = world.client(person)
    busy = [begun(client, dataset, STEPS + 1 + i)[0] for i in range(LEARNERS)]
    for url in busy:
        wait_until(lambda url=url: has_moved(client, url), 60, "the run made no progress")  # type: ignore[misc]
    url, key = begun(client, dataset)
    assert rho(world, dataset, person.name) == 3 * Decimal(RHO)
    other = client if not elsewhere else world.ledger.serve(elsewhere=True).client(person.key)
    reply = other.delete(url)
    assert reply.status_code == 200, reply.text
    assert reply.json()["status"] == "voided"
    assert "given back" in reply.json()["detail"]
    assert other.delete(url).content == reply.content
    (entry,) = world.entries(dataset, "void")
    assert entry["body"]["charge"] == reply.json()["id"]
    assert entry["body"]["reason"] == "cancelled before any data were read"
    assert rho(world, dataset, person.name) == rho(world, dataset, "*") == 2 * Decimal(RHO)
    again = ask(client, run(dataset), key)
    assert (again.status_code, again.json()["type"]) == (503, "/problems/question-voided")
    for url in busy:
        assert made(client.delete(url))["status"] == "forfeited"
    assert rho(world, dataset, "*") == 2 * Decimal(RHO)
    world.must_be_sound()


# Permissions and settled questions


def test_only_the_analyst_and_an_administrator_may_cancel_and_others_see_no_difference(
    world: World,
) -> None:
    world.serve(fault=world.ledger.hold("F6"), lease_seconds=HOUR)
    url = ask(world.client("ada"), QUESTION, new_key(), LATER).headers["Location"]
    bob = world.client("bob")
    replies = [bob.delete(url), bob.delete("/v1/queries/q_nothing"), bob.get(url)]
    assert {reply.status_code for reply in replies} == {404}
    assert len({reply.content for reply in replies}) == 1
    assert world.client("vera").delete(url).status_code == 403
    assert world.server.client().delete(url).status_code == 401
    assert made(world.client("ada").get(url))["cancel_asked_at"] is None
    reply = made(world.admin.delete(url))
    assert reply["status"] == "forfeited"
    assert made(world.client("ada").get(url))["status"] == "forfeited"


def test_a_settled_question_stays_unchanged(live_on_each: World) -> None:
    world = live_on_each
    person = world.person()
    dataset = world.open_dataset(person)
    client, key = world.client(person), new_key()
    answer = ask(client, count(dataset), key)
    url = f"/v1/queries/{answer.json()['id']}"
    before = client.get(url).content
    reply = client.delete(url)
    assert (reply.status_code, reply.json()["status"]) == (200, "answered")
    assert "nothing was changed" in reply.json()["detail"]
    assert client.get(url).content == before
    assert ask(client, count(dataset), key).content == answer.content


def test_a_stored_answer_before_its_grid_point_is_cancelled_like_a_running_question(
    world: World,
) -> None:
    """An answer for the grid point of the cancellation stands, even if it was stored later.

    So nothing reveals whether it was stored before or after.
    """
    world.serve(BURSAR_RELEASE_GRID_MS="60000", BURSAR_ANSWER_SECONDS=str(HOUR))
    client = world.client("ada")
    url = ask(client, QUESTION, new_key(), LATER).headers["Location"]

    def charge(column: str) -> object:
        ((found,),) = world.ledger.rows(f"SELECT {column} FROM charges")
        return found

    wait_until(lambda: charge("state") == "answered", 50, "the answer is not stored")
    with ThreadPoolExecutor(1) as pool:
        cancelling = pool.submit(client.delete, url)
        wait_until(lambda: charge("cancel_asked_at") is not None, 50, "no cancellation has arrived")
        assert not cancelling.done()
        # Move its grid point from a minute away to now.
        world.ledger.change("UPDATE charges SET settled_at = created_at")
        reply = cancelling.result()
    assert (reply.status_code, reply.json()["status"]) == (200, "answered")
    assert made(client.get(url))["cancel_asked_at"] is not None


# Races


@pytest.mark.invariant("I4")
def test_cancelling_and_answering_race_and_every_charge_is_settled_once(
    world: World, counts: Counts
) -> None:
    """Another server cancels half of the questions at once."""
    world.serve(lease_seconds=3)
    second = world.ledger.serve(elsewhere=True, lease_seconds=3)
    person = world.person()
    dataset = world.open_dataset(person, epsilon=100)
    asking, cancelling = world.client(person), second.client(person.key)
    start = Barrier(2)
    urls: list[str] = []

    def cancel(url: str) -> str:
        start.wait()
        return str(made(cancelling.delete(url))["status"])

    with ThreadPoolExecutor(1) as pool:
        cancellations = []
        for i in range(24):
            question = count(dataset, "0.1", fresh=True)
            question["query"]["where"] = {"column": "age", "op": "<", "value": i}
            urls.append(ask(asking, question, new_key(), LATER).headers["Location"])
            if i % 2:
                cancelled = pool.submit(cancel, urls[-1])
                start.wait()
                cancellations.append((urls[-1], cancelled.result()))
    states = {url: when_settled(asking, url).json() for url in urls}
    for url, status in cancellations:
        assert states[url]["status"] == status
    for item in states.values():
        assert (item["status"] == "answered") == (item["answer"] is not None)
    voided = sum(item["status"] == "voided" for item in states.values())
    assert len(world.entries(dataset, "void")) == voided
    assert world.spent(dataset, person.name) == (len(urls) - voided) * Decimal("0.1")
    counts("questions cancelled while they were answered", len(cancellations))
    world.must_be_sound()
