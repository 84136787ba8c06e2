"""The displayed figures of an account with cells hold in every cell, in every reply and page."""

from typing import Any

import pytest

from tests.server import REGIONS, Json, Person, World, ask, made, new_key

CELLS: Json = {"cells": {"column": "region"}}
PURE: Json = {"epsilon": 0.5}
GRANTS: dict[str, Json] = {
    "pure": {"currency": "pure", "epsilon": 3},
    "approximate": {"currency": "approximate", "epsilon": 3, "delta": "1e-3"},
    "zcdp": {"currency": "zcdp", "epsilon": 3, "delta": "1e-3"},
    "renyi": {"currency": "renyi", "epsilon": 3, "delta": "1e-3"},
    "gdp": {"currency": "gdp", "epsilon": 3, "delta": "1e-3"},
}
# The second question uses a smaller share of every limit than the first, except of delta.
SECOND: dict[str, Json] = {
    "pure": {"privacy": {"epsilon": 0.4}},
    "approximate": {
        "privacy": {"epsilon": 0.1, "delta": 1e-4},
        "mechanism": {"kind": "gaussian"},
    },
    "zcdp": {"privacy": {"rho": 0.025}, "mechanism": {"kind": "gaussian"}},
    "renyi": {"privacy": {"rho": 0.025}, "mechanism": {"kind": "gaussian"}},
    "gdp": {"privacy": {"epsilon": 0.1}},
}
ORDER = list(GRANTS)


def question(dataset: str, region: str | None, **more: Any) -> Json:
    query: Json = {"kind": "count"}
    if region is not None:
        query["where"] = {"column": "region", "op": "==", "value": region}
    return {"dataset": dataset, "query": query, "fresh": True, **more}


def opened(world: World, currency: str, **card: Any) -> tuple[str, Person]:
    person, dataset = world.person(), world.dataset(**CELLS, **card)
    for holder in ("*", person.name):
        path = f"/v1/datasets/{dataset}/budgets/{holder}"
        made(world.admin.put(path, json=GRANTS[currency]))
    return dataset, person


def bound(shown: Json, cells: list[Json], part: str) -> bool:
    """True if each figure is the largest spend, or the smallest remainder, of any cell."""
    for cell in cells:
        for name, value in cell[part].items():
            if name.endswith("_exact"):
                continue
            mine = shown[name]
            if part == "spent" and not (mine is None or (value is not None and mine >= value)):
                return False
            if part == "remaining" and mine > value:
                return False
    return True


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("currency", ORDER)
def test_every_reply_shows_figures_that_hold_in_every_cell(
    live: World, currency: str, relation: str
) -> None:
    more = {"neighbours": relation, "rows": 60} if relation == "replace_one" else {}
    dataset, person = opened(live, currency, **more)
    client = live.client(person)
    made(ask(client, question(dataset, "north", privacy=PURE), new_key()))
    second = question(dataset, "south", **SECOND[currency])
    preview = made(client.post("/v1/queries/preview", json=second))
    answer = made(ask(client, second, new_key()))
    assert answer["charged"]["cells"] == ["south"]

    path = f"/v1/datasets/{dataset}/budgets/{person.name}"
    budget = made(client.get(path))
    cells = budget["cells"]
    assert [line["cell"] for line in cells] == [*REGIONS, None]
    (listed,) = made(client.get("/v1/budgets"))["items"]
    charged = answer["charged"]["accounts"][0]
    refused = ask(client, question(dataset, None, privacy={"epsilon": 2.9}), new_key())
    assert refused.status_code == 402

    for shown in (budget, listed, charged):
        assert bound(shown["spent"], cells, "spent")
        assert bound(shown["remaining"], cells, "remaining")
        assert (shown["spent"], shown["remaining"]) == (budget["spent"], budget["remaining"])
    assert preview["remaining_after"] == refused.json()["remaining"] == budget["remaining"]
    everybody = live.budget(dataset, "*")
    assert bound(everybody["spent"], everybody["cells"], "spent")
    assert budget["used"] >= max(line["used"] for line in cells)
    live.must_be_sound()


def test_the_account_also_covers_the_cell_with_the_smaller_share_of_its_limit(live: World) -> None:
    """Cell `north` has used most of its limit, by epsilon 0.5 without delta.

    Cell `south` has an epsilon of about 1.18 at delta 9.99e-4, which the account once did not show.
    """
    dataset, person = opened(live, "zcdp")
    client = live.client(person)
    made(ask(client, question(dataset, "north", privacy=PURE), new_key()))
    alone = tradeoff(live, dataset, person)
    made(ask(client, question(dataset, "south", **SECOND["zcdp"]), new_key()))
    budget = made(client.get(f"/v1/datasets/{dataset}/budgets/{person.name}"))
    north, south = budget["cells"][:2]
    assert north["used"] > south["used"] > 0
    assert (north["spent"]["epsilon"], north["spent"]["delta"]) == (0.5, 0)
    assert south["spent"]["epsilon"] > 1.15
    assert south["spent"]["delta"] == 9.99e-4
    assert budget["spent"]["epsilon"] == south["spent"]["epsilon"]
    assert budget["spent"]["delta"] == 9.99e-4
    assert budget["spent"]["rho"] == north["spent"]["rho"] > south["spent"]["rho"]
    curve = tradeoff(live, dataset, person)
    assert all(beta <= before for beta, before in zip(curve, alone, strict=True))


def tradeoff(world: World, dataset: str, person: Person) -> list[float]:
    path = f"/v1/datasets/{dataset}/budgets/{person.name}/tradeoff"
    reply = made(world.client(person).get(path, params={"points": 41}))
    assert not reply["exact"]
    return list(reply["beta"])


@pytest.mark.parametrize("currency", ORDER)
def test_the_curve_lies_below_that_of_each_separate_cell(live: World, currency: str) -> None:
    """Two datasets answer one of the questions each, and a third answers both."""
    first, second = (
        question("", "north", privacy=PURE),
        question("", "south", **SECOND[currency]),
    )
    curves = []
    for asked in ([first], [second], [first, second]):
        dataset, person = opened(live, currency)
        for each in asked:
            made(ask(live.client(person), {**each, "dataset": dataset}, new_key()))
        curves.append(tradeoff(live, dataset, person))
    for alone, other, both in zip(*curves, strict=True):
        assert both <= min(alone, other)
