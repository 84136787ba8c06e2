"""Cells over HTTP: questions on separate cells compose in parallel, others cost every cell."""

from decimal import Decimal
from typing import Any

import httpx
import pytest

from tests.server import REGIONS, Json, Person, World, ask, exact, made, new_key, some_rows

Where = Json | None
CELLS = {"cells": {"column": "region"}}
PARALLEL = "McSherry 2009"


def region(*names: str) -> Json:
    if len(names) == 1:
        return {"column": "region", "op": "==", "value": names[0]}
    return {"column": "region", "op": "in", "value": list(names)}


def counted(dataset: str, epsilon: float | str, where: Where = None, **query: Any) -> Json:
    if where is not None:
        query["where"] = where
    return {
        "dataset": dataset,
        "query": {"kind": "count", **query},
        "privacy": {"epsilon": epsilon},
        "fresh": True,
    }


def opened(world: World, *, grant: Json | None = None, **card: Any) -> tuple[str, Person]:
    """A dataset with cells; a new person has a budget on it, and everybody has one of 10."""
    person, dataset = world.person(), world.dataset(**{**CELLS, **card})
    world.grant(dataset, "*", 10)
    body = grant or {"currency": "pure", "epsilon": 1}
    made(world.admin.put(f"/v1/datasets/{dataset}/budgets/{person.name}", json=body))
    return dataset, person


def ask_as(world: World, person: Person, question: Json) -> httpx.Response:
    return ask(world.client(person), question, new_key())


def budget(world: World, dataset: str, person: Person) -> Json:
    return made(world.client(person).get(f"/v1/datasets/{dataset}/budgets/{person.name}"))


def by_cell(world: World, dataset: str, person: Person, name: str = "spent") -> dict[Any, Decimal]:
    return {each["cell"]: exact(each[name]) for each in budget(world, dataset, person)["cells"]}


CURRENCIES: dict[str, Json] = {
    "pure": {"currency": "pure", "epsilon": 1},
    "renyi": {"currency": "renyi", "epsilon": 1, "delta": "1e-6"},
    "zcdp": {"currency": "zcdp", "epsilon": 1, "delta": "1e-6"},
}


@pytest.mark.parametrize("currency", CURRENCIES)
def test_every_region_can_be_asked_for_the_whole_budget_and_no_more(
    live_on_each: World, currency: str
) -> None:
    world = live_on_each
    dataset, person = opened(world, grant=CURRENCIES[currency])
    for name in REGIONS:
        answer = made(ask_as(world, person, counted(dataset, 1, region(name))))
        assert answer["charged"]["cells"] == [name]
        assert PARALLEL in answer["theorem"]
        again = ask_as(world, person, counted(dataset, 0.01, region(name)))
        assert (again.status_code, again.json()["largest_epsilon"] < 0.01) == (402, True)
    assert exact(world.budget(dataset, "*")["spent"]) == 1
    whole = ask_as(world, person, counted(dataset, 0.01))
    assert (whole.status_code, whole.json()["account"]) == (402, person.name)
    now = budget(world, dataset, person)
    assert exact(now["spent"]) == 1
    assert now["questions_left"] == 0
    spent = by_cell(world, dataset, person)
    assert spent.pop(None) == 0
    assert spent == dict.fromkeys(REGIONS, Decimal(1))
    world.must_be_sound()


CHARGED_TO_ALL: dict[str, Where] = {
    "no filter": None,
    "another column": {"column": "age", "op": ">", "value": 50},
    "one or the other": {"any": [region("north"), {"column": "age", "op": ">", "value": 50}]},
    "negated filter on another column": {"not": {"column": "age", "op": ">", "value": 50}},
    "every region or none": {"any": [region(*REGIONS), {"column": "region", "op": "is_null"}]},
    "impossible": {"all": [region("north"), region("south")]},
}
CHARGED_TO_SOME: dict[str, tuple[Json, list[str | None]]] = {
    "one region": (region("north"), ["north"]),
    "two": (region("north", "west"), ["north", "west"]),
    "all but one": (
        {"not": {"any": [region("south"), {"column": "region", "op": "is_null"}]}},
        ["north", "east", "west"],
    ),
    "one and an age": (
        {"all": [region("east"), {"column": "age", "op": "<", "value": 9}]},
        ["east"],
    ),
    "nowhere": ({"column": "region", "op": "is_null"}, [None]),
}


@pytest.mark.parametrize("what", CHARGED_TO_ALL)
def test_a_filter_across_cells_is_charged_to_all(live: World, what: str) -> None:
    dataset, person = opened(live)
    question = counted(dataset, 0.25, CHARGED_TO_ALL[what])
    preview = made(live.client(person).post("/v1/queries/preview", json=question))
    answer = made(ask_as(live, person, question))
    assert answer["charged"]["cells"] is preview["cells"] is None
    assert PARALLEL not in answer["theorem"]
    assert set(by_cell(live, dataset, person).values()) == {Decimal("0.25")}


@pytest.mark.parametrize("what", CHARGED_TO_SOME)
def test_a_filter_on_cells_is_charged_to_those_cells(live: World, what: str) -> None:
    where, cells = CHARGED_TO_SOME[what]
    dataset, person = opened(live)
    question = counted(dataset, 0.25, where)
    preview = made(live.client(person).post("/v1/queries/preview", json=question))
    answer = made(ask_as(live, person, question))
    assert answer["charged"]["cells"] == preview["cells"] == cells
    assert answer["theorem"] == preview["theorem"]
    spent = by_cell(live, dataset, person)
    assert {cell for cell, units in spent.items() if units} == set(cells)
    last = budget(live, dataset, person)["last_question"]
    assert last["questions_left"] == 3, "the charge is on its own cells"


def test_groups_over_the_cells_cost_as_much_as_one_question(live: World) -> None:
    dataset, person = opened(live)
    answer = made(ask_as(live, person, counted(dataset, 0.5, group_by=["region"])))
    assert answer["charged"]["cells"] == REGIONS, "rows without a region are in no group"
    assert len(answer["value"]) == 4
    assert exact(budget(live, dataset, person)["spent"]) == Decimal("0.5")
    made(ask_as(live, person, counted(dataset, 0.5, region("north"))))
    assert ask_as(live, person, counted(dataset, 0.1, group_by=["region"])).status_code == 402
    made(ask_as(live, person, counted(dataset, 0.5, region("south", "east"), group_by=["region"])))
    spent = by_cell(live, dataset, person)
    assert spent == {"north": 1, "south": 1, "east": 1, "west": Decimal("0.5"), None: 0}


def test_spends_of_cells_and_of_the_whole_add_up(live: World) -> None:
    dataset, person = opened(live)
    made(ask_as(live, person, counted(dataset, 0.3)))
    made(ask_as(live, person, counted(dataset, 0.5, region("north"))))
    refused = ask_as(live, person, counted(dataset, 0.3))
    assert (refused.status_code, refused.json()["largest_epsilon"]) == (402, 0.2)
    refused = ask_as(live, person, counted(dataset, 0.8, region("south")))
    assert (refused.status_code, refused.json()["largest_epsilon"]) == (402, 0.7)
    made(ask_as(live, person, counted(dataset, 0.7, region("south"))))
    assert by_cell(live, dataset, person, "remaining")["east"] == Decimal("0.7")
    live.must_be_sound()


def test_under_replace_one_the_two_largest_cells_add_up(live_on_each: World) -> None:
    world = live_on_each
    dataset, person = opened(world, neighbours="replace_one", rows=60)
    made(ask_as(world, person, counted(dataset, 0.6, region("north"))))
    refused = ask_as(world, person, counted(dataset, 0.5, region("south")))
    assert (refused.status_code, refused.json()["largest_epsilon"]) == (402, 0.4)
    lines = {each["cell"]: each for each in budget(world, dataset, person)["cells"]}
    assert {cell: line["largest_epsilon"] for cell, line in lines.items()} == dict.fromkeys(
        [*REGIONS, None], 0.4
    )
    for name in ("south", "east", "west"):
        made(ask_as(world, person, counted(dataset, 0.4, region(name))))
    assert exact(budget(world, dataset, person)["spent"]) == 1
    for where in (None, region("north"), region("west"), region("south", "east")):
        assert ask_as(world, person, counted(dataset, 0.01, where)).status_code == 402
    world.must_be_sound()


def test_under_replace_one_a_question_on_several_cells_is_charged_to_all(live: World) -> None:
    dataset, person = opened(live, neighbours="replace_one", rows=60)
    for where in (region("north", "south"), None):
        answer = made(ask_as(live, person, counted(dataset, 0.25, where)))
        assert answer["charged"]["cells"] is None
    grouped = made(ask_as(live, person, counted(dataset, 0.25, group_by=["region"])))
    assert grouped["charged"]["cells"] is None
    assert exact(budget(live, dataset, person)["spent"]) == Decimal("0.75")


def test_cells_of_an_ordered_column_are_intervals(live: World) -> None:
    dataset, person = opened(live, cells={"column": "age", "edges": [0, 18, 65, 120]})
    young = {"column": "age", "op": "<", "value": 18}
    across = {"column": "age", "op": "<", "value": 19}
    answer = made(ask_as(live, person, counted(dataset, 1, young)))
    assert len(answer["charged"]["cells"]) == 1
    assert ask_as(live, person, counted(dataset, 0.01, across)).status_code == 402
    made(ask_as(live, person, counted(dataset, 1, {"column": "age", "op": ">=", "value": 65})))
    made(
        ask_as(
            live, person, counted(dataset, 1, {"column": "age", "op": "between", "value": [18, 64]})
        )
    )
    assert ask_as(live, person, counted(dataset, 0.01)).status_code == 402


def test_a_preview_of_a_list_separates_the_cells(live: World) -> None:
    dataset, person = opened(live)
    asks = [(0.7, "north"), (0.7, "south"), (0.4, "north"), (0.3, "north"), (0.2, None)]
    questions = [counted(dataset, e, None if name is None else region(name)) for e, name in asks]
    preview = made(live.client(person).post("/v1/queries/preview", json=questions))
    previewed = [item["fits"] for item in preview["items"]]
    done = [ask_as(live, person, question).status_code == 200 for question in questions]
    assert previewed == done == [True, True, False, True, False]
    assert preview["stops_at"] == 2


def test_the_same_data_cannot_have_other_cells_under_another_name(live: World) -> None:
    path = live.write_csv(some_rows())
    first = live.dataset(path, **CELLS)
    body = made(live.admin.get(f"/v1/datasets/{first}"))
    assert body["cells"] is not None
    other = {
        "name": f"{first}-again",
        "source": {"engine": "duckdb", "path": path},
        "person": {"kind": "row"},
        "neighbours": "add_remove",
        "columns": body["columns"],
        "cells": {"column": "smoker"},
    }
    assert live.admin.post("/v1/datasets", json=other).status_code == 409
    other["cells"] = {"column": "region"}
    made(live.admin.post("/v1/datasets", json=other))
    person = live.person()
    live.grant(first, "*", 1)
    live.grant(first, person.name, 1)
    made(ask_as(live, person, counted(first, 1, region("north"))))
    assert ask_as(live, person, counted(other["name"], 0.1, region("north"))).status_code == 402
    made(ask_as(live, person, counted(other["name"], 1, region("south"))))
    live.must_be_sound()
