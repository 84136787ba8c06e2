"""Sample and aggregate over HTTP: previewed, charged, answered near the truth; refused by name."""

from decimal import Decimal

import pytest

from tests.server import COLUMNS, HEADER, Json, Person, World, ask, exact, made, new_key

OF: Json = {
    "kind": "sample_aggregate",
    "statistic": {"kind": "median", "column": "age"},
    "blocks": 40,
    "low": 0,
    "high": 120,
}
ONE = {"high": 1}
MEDIAN, VOTES = "permute_and_flip", "permute_and_flip"
DAY = "2021-01-01"
SMOKERS: Json = {"column": "smoker", "op": "==", "value": True}
SLOPE: Json = {
    "kind": "linear_regression",
    "outcome": "age",
    "features": ["income"],
    "coefficient": "income",
}
MODE: Json = {"kind": "sample_aggregate", "statistic": {"kind": "mode", "column": "region"}}


@pytest.fixture(scope="module")
def asker(live_on_each: World) -> tuple[World, Person, str]:
    world = live_on_each
    person = world.person()
    regions = ["north", "north", "south"]
    rows = [
        [50 + i % 11, 1000 * (i % 11), regions[i % 3], "false" if i % 4 else "true", DAY, 10]
        for i in range(2000)
    ]
    stay = {"name": "stay", "type": "integer", "low": 1, "high": 50}
    path = world.write_csv(rows, [*HEADER, "stay"])
    dataset = world.dataset(path, columns=[*COLUMNS, stay])
    for holder in ("*", person.name):
        world.grant(dataset, holder, 100_000)
    return world, person, dataset


@pytest.mark.parametrize(
    ("changes", "mechanism", "truth"),
    [
        ({}, "permute_and_flip", 55),
        ({"aggregate": "mean"}, "laplace", 55),
        ({"aggregate": "mean", "statistic": {"kind": "mean", "column": "age"}}, "laplace", 55),
        ({"statistic": {"kind": "max", "column": "age"}}, "permute_and_flip", 60),
        ({"statistic": {"kind": "iqr", "column": "age"}}, "permute_and_flip", 6),
        ({"statistic": {"kind": "variance", "column": "age"}}, "permute_and_flip", 10),
        ({"statistic": {"kind": "min", "column": "age"}}, "permute_and_flip", 50),
        ({"statistic": {"kind": "quantile", "column": "age", "q": 0.9}}, "permute_and_flip", 59),
        ({"statistic": {"kind": "count"}}, "permute_and_flip", 50),
        ({"statistic": {"kind": "sum", "column": "age"}, "high": 6000}, "permute_and_flip", 2750),
        (
            {"statistic": {"kind": "trimmed_mean", "column": "age", "trim": "0.2"}},
            "permute_and_flip",
            55,
        ),
        ({"statistic": {"kind": "ratio", "numerator": {"where": SMOKERS}}, **ONE}, MEDIAN, 0.25),
        (
            {
                "statistic": {
                    "kind": "ratio",
                    "numerator": {"column": "income"},
                    "denominator": {"column": "stay"},
                },
                "high": 2000,
            },
            MEDIAN,
            500,
        ),
        ({"statistic": {"kind": "cdf", "column": "age", "edge": 52}, **ONE}, MEDIAN, 3 / 11),
        ({"statistic": {"kind": "cdf", "column": "seen", "edge": DAY}, **ONE}, MEDIAN, 1),
        ({"statistic": SLOPE, "high": 0.01}, MEDIAN, 0.001),
        (
            {"statistic": {**SLOPE, "coefficient": "(intercept)"}, "aggregate": "mean"},
            "laplace",
            50,
        ),
    ],
)
def test_every_statistic_costs_its_preview_and_is_near_the_truth(
    asker: tuple[World, Person, str], changes: Json, mechanism: str, truth: float
) -> None:
    """At epsilon 20 a choice is within two ranks, and Laplace noise is within 2 of 120."""
    world, person, dataset = asker
    client = world.client(person)
    query: Json = {**OF, **changes}
    question = {"dataset": dataset, "query": query, "privacy": {"epsilon": 20}}
    preview = made(client.post("/v1/queries/preview", json=question))
    assert preview["mechanism"]["kind"] == mechanism
    assert preview["mechanism"]["blocks"] == 40
    assert preview["mechanism"]["blocks_changed"] == 1
    before = world.spent(dataset, person.name)
    key = new_key()
    answer = made(ask(client, question, key))
    assert exact(answer["charged"]) == exact(preview["price"]) == Decimal(20)
    assert world.spent(dataset, person.name) - before == 20
    assert abs(answer["value"] - truth) < 0.04 * query["high"]
    assert (answer["interval"] is not None) == (mechanism == "laplace")
    assert ask(client, question, key).json() == answer
    world.must_be_sound()


def test_the_mode_is_elected_by_votes_of_blocks(asker: tuple[World, Person, str]) -> None:
    """Two of three rows are in the north, so nearly all blocks vote for it."""
    world, person, dataset = asker
    client = world.client(person)
    query = {**MODE, "blocks": 40}
    question = {"dataset": dataset, "query": query, "privacy": {"epsilon": 20}}
    preview = made(client.post("/v1/queries/preview", json=question))
    assert preview["mechanism"]["kind"] == VOTES
    assert preview["mechanism"]["score_range"] == 2
    answer = made(ask(client, question, new_key()))
    assert answer["value"] == "north"
    assert exact(answer["charged"]) == exact(preview["price"]) == Decimal(20)
    smokers = {**query, "statistic": {"kind": "mode", "column": "smoker"}}
    assert made(ask(client, {**question, "query": smokers}, new_key()))["value"] is False
    world.must_be_sound()


def test_an_invalid_field_is_named_and_nothing_is_charged(asker: tuple[World, Person, str]) -> None:
    world, person, dataset = asker
    client = world.client(person)
    before = world.spent(dataset, person.name)
    for changes, at in (
        ({"blocks": 1}, "/query/blocks"),
        ({"low": 120}, "/query"),
        ({"statistic": {"kind": "median", "column": "region"}}, "/query/statistic/column"),
        ({"statistic": {"kind": "code", "column": "age"}}, "/query/statistic/kind"),
        ({"statistic": {"kind": "quantile", "column": "age"}}, "/query/statistic"),
        ({"low": "a"}, "/query/low"),
        ({"statistic": {"kind": "cdf", "column": "age"}}, "/query/statistic/edge"),
        ({"statistic": {**SLOPE, "coefficient": "region"}}, "/query/statistic/coefficient"),
        ({"statistic": {"kind": "mode", "column": "region"}}, "/query/low"),
        ({"aggregate": "votes"}, "/query/aggregate"),
    ):
        question = {"dataset": dataset, "query": {**OF, **changes}, "privacy": {"epsilon": 1}}
        reply = ask(client, question, new_key())
        assert reply.status_code == 422, reply.text
        assert any(each["pointer"].startswith(at) for each in reply.json()["errors"]), reply.text
    assert world.spent(dataset, person.name) == before


def test_an_empty_table_gets_a_normal_answer(asker: tuple[World, Person, str]) -> None:
    world, person, dataset = asker
    nobody = {"column": "age", "op": ">", "value": 119}
    for aggregate in ("median", "mean"):
        query = {**OF, "aggregate": aggregate, "where": nobody}
        question = {"dataset": dataset, "query": query, "privacy": {"epsilon": 10}}
        answer = made(ask(world.client(person), question, new_key()))
        assert abs(answer["value"] - 60) < 10  # the middle of the range


def test_a_person_with_many_rows_affects_one_block(live_on_each: World) -> None:
    """The answer is near the truth: 500 persons have four rows each, in 20 blocks."""
    world = live_on_each
    person = world.person()
    prices = []
    for rows_max in (1, 4):
        rows = [[f"p{i % 500}", 40 + i % 21, rows_max, "north", "true", DAY] for i in range(2000)]
        path = world.write_csv(rows, ["who", *HEADER])
        by = {"kind": "column", "column": "who", "rows_max": rows_max}
        dataset = world.dataset(path, person=by)
        for holder in ("*", person.name):
            world.grant(dataset, holder, 1000)
        query = {**OF, "blocks": 20, "aggregate": "mean"}
        half = {"half_width": 6, "confidence": 0.95}
        question = {"dataset": dataset, "query": query, "privacy": half}
        client = world.client(person)
        preview = made(client.post("/v1/queries/preview", json=question))
        assert preview["mechanism"]["blocks_changed"] == 1
        answer = made(ask(client, question, new_key()))
        assert abs(answer["value"] - 50) < 20
        prices.append(exact(answer["charged"]))
        assert prices[-1] == exact(preview["price"])
    assert prices[0] == prices[1]
    world.must_be_sound()
