"""Headers with the present balance: current where the stored text is old, and only one's own."""

import re
from decimal import Decimal

import httpx
import pytest

from tests.server import (
    World,
    above_threshold,
    ask,
    ask_stream,
    count,
    exact,
    made,
    new_key,
    open_stream,
    when_settled,
)

REMAINING, USED = "Bursar-Remaining", "Bursar-Used"
DICTIONARY = re.compile(r'epsilon="([0-9.]+)"(?:, delta="([0-9.]+)")?')
DECIMAL = re.compile(r"[0-9]{1,12}\.[0-9]{1,3}")


def left(reply: httpx.Response) -> Decimal:
    """Remaining epsilon in the header, whose form is checked."""
    parts = DICTIONARY.fullmatch(reply.headers[REMAINING])
    assert parts is not None, reply.headers[REMAINING]
    assert DECIMAL.fullmatch(reply.headers[USED])
    return Decimal(parts[1])


def must_be_the_balance(world: World, reply: httpx.Response, dataset: str, holder: str) -> None:
    budget = world.budget(dataset, holder)
    parts = DICTIONARY.fullmatch(reply.headers[REMAINING])
    assert parts is not None
    assert Decimal(parts[1]) == exact(budget["remaining"])
    delta = exact(budget["remaining"], "delta")
    assert (None if parts[2] is None else Decimal(parts[2])) == (
        None if budget["currency"] == "pure" else delta
    )
    used = Decimal(reply.headers[USED])
    assert 0 <= used - Decimal(repr(budget["used"])) < Decimal("0.001")


@pytest.mark.parametrize("currency", ["pure", "approximate", "zcdp", "renyi", "gdp"])
def test_a_charge_is_followed_by_the_balance_in_every_currency(
    live_on_each: World, currency: str
) -> None:
    world, person = live_on_each, live_on_each.person()
    dataset = world.dataset(cells={"column": "region"})
    grant = {"currency": currency, **({} if currency == "pure" else {"delta": "0.00001"})}
    world.grant(dataset, "*", 50, **grant)
    world.grant(dataset, person.name, 5, **grant)
    client = world.client(person)
    north = {"kind": "count", "where": {"column": "region", "op": "==", "value": "north"}}
    for question in (
        count(dataset, "0.100000000001"),
        count(dataset, 0.25, query=north),
        count(dataset, 0.25, query=north, fresh=True),  # charged and answered by one commit
    ):
        reply = ask(client, question, new_key())
        made(reply)
        must_be_the_balance(world, reply, dataset, person.name)


def test_replayed_and_reused_answers_carry_the_present_balance(live_on_each: World) -> None:
    world, person = live_on_each, live_on_each.person()
    dataset = world.open_dataset(person, epsilon=1)
    client, key = world.client(person), new_key()
    first = ask(client, count(dataset, 0.25), key)
    assert (left(first), first.headers[USED]) == (Decimal("0.75"), "0.25")
    assert left(ask(client, count(dataset, 0.5), new_key())) == Decimal("0.25")

    replayed = ask(client, count(dataset, 0.25), key)
    reused = ask(client, count(dataset, 0.25), new_key())
    assert replayed.headers["Idempotent-Replayed"] == reused.headers["Bursar-Reused"] == "true"
    for old in (replayed, reused):
        assert old.content == first.content
        assert (left(old), old.headers[USED]) == (Decimal("0.25"), "0.75")
    world.grant(dataset, person.name, 2)  # written by another connection
    for reply in (
        ask(client, count(dataset, 0.25), key),
        client.get(f"/v1/queries/{first.json()['id']}"),
        client.get(f"/v1/datasets/{dataset}/budgets/{person.name}"),
        client.post("/v1/queries/preview", json=count(dataset, 0.1)),
        client.post("/v1/queries/preview", json=[count(dataset, 0.1), count(dataset, 0.2)]),
    ):
        assert reply.status_code == 200
        assert (left(reply), reply.headers[USED]) == (Decimal("1.25"), "0.375")


def test_refusals_carry_the_callers_own_balance_and_not_the_one_that_refused(
    live_on_each: World,
) -> None:
    world, person = live_on_each, live_on_each.person()
    dataset = world.open_dataset(person, epsilon=1, total=0.5)
    client = world.client(person)
    refused = ask(client, count(dataset, 0.75), new_key())
    assert (refused.status_code, refused.json()["account"]) == (402, "*")
    assert (left(refused), refused.headers[USED]) == (Decimal(1), "0.0")
    key = new_key()
    made(ask(client, count(dataset, "0.0001"), key))
    refused = ask(client, count(dataset, 2), new_key())
    assert (refused.status_code, left(refused)) == (402, Decimal("0.9999"))
    assert refused.headers[USED] == "0.001"  # rounded up
    world.grant(dataset, person.name, "0.00005")
    frozen = ask(client, count(dataset, 0.1), new_key())
    assert (frozen.status_code, left(frozen), frozen.headers[USED]) == (423, Decimal(0), "1.0")


def test_long_questions_and_streams_carry_the_balance(live_on_each: World) -> None:
    world, person = live_on_each, live_on_each.person()
    dataset = world.open_dataset(person, epsilon=2)
    client = world.client(person)
    accepted = ask(client, count(dataset, 0.25), new_key(), prefer="respond-async")
    assert (accepted.status_code, left(accepted)) == (202, Decimal("1.75"))
    settled = when_settled(client, accepted.headers["Location"])
    assert left(settled) == Decimal("1.75")
    previewed = client.post("/v1/streams/preview", json=above_threshold(dataset, 0.5))
    assert left(previewed) == Decimal("1.75")
    opened = open_stream(client, above_threshold(dataset, 0.5), new_key())
    assert (opened.status_code, left(opened)) == (201, Decimal("1.25"))
    stream = opened.json()["id"]
    made(ask(client, count(dataset, 0.75), new_key()))
    assert left(ask_stream(client, stream)) == Decimal("0.5")
    assert left(client.get(f"/v1/streams/{stream}")) == Decimal("0.5")
    refused = open_stream(client, above_threshold(dataset, 1), new_key())
    assert (refused.status_code, left(refused)) == (402, Decimal("0.5"))


def test_an_analyst_without_an_own_account_sees_that_of_their_group(live_on_each: World) -> None:
    world, person = live_on_each, live_on_each.person()
    group = f"team-{person.name}"
    made(world.admin.patch(f"/v1/analysts/{person.name}", json={"groups": [group]}))
    dataset = world.open_dataset(epsilon=1)
    world.grant(dataset, f"group:{group}", 3)
    client = world.client(person)
    reply = ask(client, count(dataset, 0.5), new_key())
    assert left(reply) == Decimal("2.5")
    assert left(client.get(f"/v1/queries/{reply.json()['id']}")) == Decimal("2.5")
    world.grant(dataset, person.name, 1)
    assert left(ask(client, count(dataset, 0.25), new_key())) == Decimal("0.75")


@pytest.mark.invariant("I27")
def test_no_reply_shows_a_balance_to_somebody_without_a_grant(live_on_each: World) -> None:
    world, person = live_on_each, live_on_each.person()
    dataset = world.open_dataset(person, epsilon=1)
    answer = made(ask(world.client(person), count(dataset, 0.25), new_key()))
    stranger = world.client(world.person())
    replies = [
        ask(stranger, count(dataset, 0.1), new_key()),
        ask(stranger, count("nothing", 0.1), new_key()),
        stranger.get(f"/v1/queries/{answer['id']}"),
        stranger.get(f"/v1/datasets/{dataset}/budgets/{person.name}"),
        stranger.post("/v1/queries/preview", json=count(dataset, 0.1)),
        world.admin.get(f"/v1/queries/{answer['id']}"),
        ask(world.client(person), {"dataset": dataset}, new_key()),
    ]
    assert [reply.status_code for reply in replies] == [403, 403, 404, 404, 403, 200, 422]
    for reply in replies:
        assert REMAINING not in reply.headers
        assert USED not in reply.headers
    two = [count(dataset, 0.1), count(world.open_dataset(person), 0.1)]
    several = world.client(person).post("/v1/queries/preview", json=two)
    assert several.status_code == 200
    assert REMAINING not in several.headers


def test_an_unchanged_budget_carries_its_balance_too(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person, epsilon=1)
    path = f"/v1/datasets/{dataset}/budgets/{person.name}"
    tag = live.admin.get(path).headers["ETag"]
    same = live.admin.get(path, headers={"If-None-Match": tag})
    assert (same.status_code, left(same)) == (304, Decimal(1))
