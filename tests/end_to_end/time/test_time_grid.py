"""The time grid of releases: reply times reveal at most the number of grid steps."""

import datetime
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.bursard import wait_until
from tests.server import Json, World, ask, count, made, new_key

GRID_MS = 1000
QUESTION = count("people", 0.1)


def seconds_between(item: Json) -> float:
    asked, settled = (
        datetime.datetime.fromisoformat(item[name]) for name in ("asked_at", "settled_at")
    )
    return (settled - asked).total_seconds()


@pytest.mark.invariant("I22")
def test_a_stored_answer_is_hidden_before_its_grid_point(world: World) -> None:
    """The answer is stored at once, and its grid point is a minute away.

    Until then every request reports that the question is still running. Asking the same anew is
    charged.
    """
    world.serve(BURSAR_RELEASE_GRID_MS="60000")
    client, key = world.client("ada"), new_key()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(ask, world.client("ada"), QUESTION, key)
        stored = "SELECT state FROM charges"
        wait_until(
            lambda: world.ledger.rows(stored) == [("answered",)], 50, "the answer is not stored"
        )
        again = ask(client, QUESTION, key)
        assert again.status_code == 409, "a stored answer was returned before its grid point"
        (shown,) = made(client.get("/v1/queries"))["items"]
        assert (shown["status"], shown["settled_at"], shown["answer"]) == ("running", None, None)
        preview = made(client.post("/v1/queries/preview", json=QUESTION))
        assert preview["reused"] is False
        assert not first.done()
        world.server.kill()
        with pytest.raises(httpx.TransportError):
            first.result()


@pytest.mark.invariant("I22")
def test_an_answer_is_returned_and_reused_from_its_grid_point_on(world: World) -> None:
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
