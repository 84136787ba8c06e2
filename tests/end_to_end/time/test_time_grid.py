"""The time grid of releases: nothing tells how long an answer took, but for whole grid steps."""

import datetime
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.server import Json, World, ask, count, made, new_key, wait_until

GRID_MS = 1000
QUESTION = count("people", 0.1)


def seconds_between(item: Json) -> float:
    asked, settled = (
        datetime.datetime.fromisoformat(item[name]) for name in ("asked_at", "settled_at")
    )
    return (settled - asked).total_seconds()


@pytest.mark.invariant("I22")
def test_what_is_stored_is_not_told_before_its_point_of_the_grid(world: World) -> None:
    """The answer is stored at once, and its point is a minute away; until then every way to it says
    that the question is still running, and asking the same anew is charged as if it were."""
    world.serve(BURSAR_RELEASE_GRID_MS="60000")
    client, key = world.client("ada"), new_key()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(ask, world.client("ada"), QUESTION, key)
        stored = "SELECT state FROM charges"
        wait_until(lambda: world.ledger.rows(stored) == [("answered",)], 50, "it is not stored")
        again = ask(client, QUESTION, key)
        assert again.status_code == 409, "a stored answer was given before its point of the grid"
        (shown,) = made(client.get("/v1/queries"))["items"]
        assert (shown["status"], shown["settled_at"], shown["answer"]) == ("running", None, None)
        preview = made(client.post("/v1/queries/preview", json=QUESTION))
        assert preview["reused"] is False
        assert not first.done()
        world.server.kill()
        with pytest.raises(httpx.TransportError):
            first.result()


@pytest.mark.invariant("I22")
def test_an_answer_is_told_and_given_again_from_its_point_of_the_grid_on(world: World) -> None:
    world.serve(BURSAR_RELEASE_GRID_MS=str(GRID_MS))
    client, key = world.client("ada"), new_key()
    begin = time.monotonic()
    reply = ask(client, QUESTION, key)
    assert time.monotonic() - begin >= GRID_MS / 1000
    assert ask(client, QUESTION, key).content == reply.content
    assert made(ask(client, QUESTION, new_key()))["id"] == made(reply)["id"]  # reused, at once
    items = made(client.get("/v1/queries"))["items"]
    first_asked = next(item for item in items if item["id"] == made(reply)["id"])
    assert first_asked["status"] == "answered"
    assert seconds_between(first_asked) % (GRID_MS / 1000) == 0
