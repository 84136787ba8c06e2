"""The list of budgets over HTTP: its filters, and an ETag that changes with each balance."""

import pytest

from tests.server import Json, World, ask, count, made, new_key


def listed(page: Json) -> list[tuple[str, str]]:
    return [(item["dataset"], item["holder"]) for item in page["items"]]


def test_filters_select_by_dataset_holder_and_used_share(live_on_each: World) -> None:
    world = live_on_each
    one, other = world.person(), world.person()
    first, second = (world.open_dataset(one, other, epsilon=1) for _ in range(2))
    made(ask(world.client(one), count(first, 0.5), new_key()))
    made(ask(world.client(other), count(first, 0.75), new_key()))
    get = world.admin.get

    on_first = made(get("/v1/budgets", params={"dataset": first.upper()}))
    assert sorted(listed(on_first)) == sorted(
        [(first, "*"), (first, one.name), (first, other.name)]
    )
    own = made(get("/v1/budgets", params={"holder": one.name.upper()}))
    assert sorted(listed(own)) == sorted([(first, one.name), (second, one.name)])
    both = {"holder": one.name, "dataset": second}
    assert listed(made(get("/v1/budgets", params=both))) == [(second, one.name)]

    for above, expected in [
        (0.75, []),
        (0.7499, [(first, other.name)]),
        (0.5, [(first, other.name)]),
        (0, sorted([(first, "*"), (first, one.name), (first, other.name)])),
    ]:
        parameters = {"dataset": first, "used_above": str(above)}
        assert sorted(listed(made(get("/v1/budgets", params=parameters)))) == expected
    pages = world.pages("/v1/budgets", dataset=first, used_above=0, limit=1)
    assert sorted(item["holder"] for item in pages) == sorted(["*", one.name, other.name])
    assert listed(made(get("/v1/budgets", params={"dataset": "nothing"}))) == []


@pytest.mark.invariant("I27")
def test_a_filter_shows_an_analyst_nothing_that_the_list_would_not(live_on_each: World) -> None:
    world = live_on_each
    one, other = world.person(), world.person()
    dataset = world.open_dataset(one, epsilon=1)
    hidden = world.open_dataset(other, epsilon=1)
    client = world.client(one)
    nothing = client.get("/v1/budgets", params={"dataset": "nothing"})
    assert made(nothing) == {"items": [], "next_cursor": None}
    for parameters in (
        {"dataset": hidden},
        {"holder": other.name},
        {"holder": "*"},
        {"holder": "nobody"},
        {"dataset": dataset, "holder": "*"},
    ):
        reply = client.get("/v1/budgets", params=parameters)
        assert (reply.text, reply.headers["ETag"]) == (nothing.text, nothing.headers["ETag"])
    assert listed(made(client.get("/v1/budgets", params={"holder": one.name}))) == [
        (dataset, one.name)
    ]


@pytest.mark.parametrize(
    ("parameters", "names"),
    [
        ({"used_above": "1.5"}, "/used_above"),
        ({"used_above": "nan"}, "/used_above"),
        ({"used_above": "much"}, "/used_above"),
        ({"holder": ""}, "/holder"),
        ({"dataset": "a\x00b"}, "/dataset"),
        ({"used_over": "0.5"}, "did you mean 'used_above'"),
    ],
)
def test_a_wrong_filter_is_refused_by_name(
    live: World, parameters: dict[str, str], names: str
) -> None:
    refused = live.admin.get("/v1/budgets", params=parameters)
    assert refused.status_code == 422
    assert names in refused.text


def test_the_etag_changes_with_every_listed_balance_and_member(live_on_each: World) -> None:
    world, person = live_on_each, live_on_each.person()
    dataset = world.open_dataset(person, epsilon=1)
    client, tags = world.client(person), set()

    def changed() -> bool:
        reply = client.get("/v1/budgets")
        tag = reply.headers["ETag"]
        assert tag.startswith('"')
        for header in (tag, f'"other", W/{tag}', "*"):
            same = client.get("/v1/budgets", headers={"If-None-Match": header})
            assert (same.status_code, same.content, same.headers["ETag"]) == (304, b"", tag)
        for header in ('"other"', "garbage", tag.strip('"')):
            assert client.get("/v1/budgets", headers={"If-None-Match": header}).text == reply.text
        new = tag not in tags
        tags.add(tag)
        return new

    assert changed()
    assert not changed()
    made(ask(client, count(dataset, 0.25), new_key()))
    assert changed()
    world.grant(dataset, "*", 999)  # not listed for an analyst
    assert not changed()
    world.grant(dataset, person.name, 2)
    assert changed()
    world.grant(world.open_dataset(epsilon=1), person.name, 1)
    assert changed()
    limited = client.get("/v1/budgets", params={"limit": 1}).headers["ETag"]
    assert limited not in tags


def test_pages_of_used_budgets_join_without_a_gap(live: World) -> None:
    people = [live.person() for _ in range(3)]
    dataset = live.open_dataset(*people, epsilon=1)
    for person in people[1:]:
        made(ask(live.client(person), count(dataset, 0.25), new_key()))
    everything = live.pages("/v1/budgets", limit=200)
    for limit in (1, 2, 200):
        assert live.pages("/v1/budgets", limit=limit, used_above=0) == [
            item for item in everything if item["used"] > 0
        ]
