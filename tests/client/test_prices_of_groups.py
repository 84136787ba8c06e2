"""The ledger books what the client states as the price of separately asked groups."""

from collections.abc import Iterator
from typing import Any

import pytest

import bursar
from bursar import Client, Dataset, col, mechanisms
from tests.server import REGIONS, World, card, made, some_rows

CARDS: dict[str, dict[str, Any]] = {
    "add_remove": {"neighbours": "add_remove"},
    "replace_one": {"neighbours": "replace_one", "rows": 60},
}
PRICES: dict[str, dict[str, Any]] = {
    "pure": {"epsilon": "0.1"},
    "approximate": {
        "epsilon": 0.1,
        "delta": 1e-8,
        "mechanism": mechanisms.smooth_sensitivity(noise="gaussian"),
    },
}


@pytest.fixture
def b(live: World) -> Iterator[Client]:
    with bursar.connect(live.server.url, live.people["ada"].key, state=None) as client:
        yield client


def table(
    world: World, b: Client, neighbours: str, currency: str, *, cells: bool = True
) -> Dataset:
    body = card(world.write_csv(some_rows()), **CARDS[neighbours])
    body |= {"cells": {"column": "region"}} if cells else {}
    made(world.admin.post("/v1/datasets", json=body))
    delta = {} if currency == "pure" else {"delta": 1e-6}
    for holder in ("*", "ada"):
        world.grant(body["name"], holder, 4, currency=currency, **delta)
    return b[body["name"]]


@pytest.mark.parametrize("cells", [True, False], ids=["cells", "no cells"])
@pytest.mark.parametrize("currency", PRICES)
@pytest.mark.parametrize("neighbours", CARDS)
def test_price_and_charge_are_what_the_budget_loses(
    live: World, b: Client, neighbours: str, currency: str, cells: bool
) -> None:
    dataset = table(live, b, neighbours, currency, cells=cells)
    times = 4 if not cells else 2 if neighbours == "replace_one" else 1
    before = dataset.budget.remaining
    question = dataset.median("income").by("region")
    preview = question.preview(**PRICES[currency])
    answer = question.ask(**PRICES[currency])
    after = dataset.budget.remaining
    for name in ("epsilon", "delta"):
        lost = getattr(before, name) - getattr(after, name)
        assert getattr(preview.price, name) == pytest.approx(lost), name
        assert getattr(answer.charged.loss, name) == pytest.approx(lost), name
    assert preview.price.epsilon == pytest.approx(times * 0.1, abs=1e-11)
    assert question.ask(**PRICES[currency]).charged.loss.epsilon is None  # reused


def test_groups_that_the_filter_excludes_are_not_asked(live: World, b: Client) -> None:
    dataset = table(live, b, "add_remove", "pure")
    north = dataset.where(col.region == "north").median("age").by("region")
    assert "3 groups left out" in str(north)
    assert [row["region"] for row in north.ask(epsilon=0.1).rows()] == ["north"]
    assert dataset.budget.members["cells"][1]["spent"]["epsilon"] == 0
    others = dataset.where(~col.region.isin(["north", "east"]), col.age > 3)
    bodies = others.median("age").by("region").at(epsilon=1)._bodies(None)
    assert len(bodies) == 2
    either = dataset.where((col.region == "north") | (col.age > 3)).median("age").by("region")
    assert len(either.at(epsilon=1)._bodies(None)) == len(REGIONS)
    with pytest.raises(bursar.BadQuestion, match="excludes every group"):
        str(dataset.where(col.region.is_null()).median("age").by("region"))


def test_assumptions_reach_every_group_and_plan(live: World, b: Client) -> None:
    dataset = table(live, b, "add_remove", "pure")
    medians = dataset.median("age").by("region")
    curve = medians.preview(epsilons=[0.1, 0.5]).curve
    assert [point["price"]["epsilon"] for point in curve] == [0.1, 0.5]
    errors = [point["expected_error"]["half_width"] for point in curve]
    assert errors[0] > errors[1]
    bought = medians.preview(epsilon=0.1, account={"currency": "pure", "epsilon": 0.05})
    assert not bought.fits
    left = medians.preview(epsilon=0.1, account={"currency": "pure", "epsilon": 3})
    assert left.questions_left == 30
    admin = bursar.connect(live.server.url, live.ledger.admin_key, state=None)
    with admin:
        seen = admin[dataset.name]
        assert seen.median("age").by("region").preview(epsilon=0.1, holder="ada").fits
        plan = admin.plan(seen.mean("age"), seen.median("age").by("region"))
        preview = plan.preview(epsilon=0.1, holder="ada", rows=50)
        assert len(preview.items) == 5
        assert preview.items[0].expected_error.half_width is not None
        poor = plan.preview(epsilon=0.1, account={"currency": "pure", "epsilon": 0.1})
        assert poor.stops_at == 1
