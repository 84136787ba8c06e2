"""Rehearsals: every kind on made-up rows, with nothing charged, stored or opened."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.access import Principal, Role, holders_of
from app.actions.asking.rehearse_query import RehearseQuery
from app.actions.scheduling.planning_threads import PlanningThreads
from app.data.card import Card, Dataset, Source, Version
from app.engines.files.made_up_rows import DuckDBMadeUpTables
from app.errors import EngineFailed, Invalid, NoGrant, NotFound, TooManyRunning
from app.mechanisms.sampling.system import SystemRandom
from app.planning.plan import Planner
from app.planning.preview_request import AssumedQuestion
from app.ports.ledger import Grant
from app.queries import QUERIES
from tests.golden.cards import CARDS
from tests.golden.statements import all_questions

Json = dict[str, Any]
ANN = Principal("a_ann", "Ann", Role.ANALYST, "k", holders_of("Ann", ()))
ALL = {title: (name, query, mechanism) for title, name, query, mechanism in all_questions()}
BOTH: Json = {"epsilon": 5, "delta": "1e-6"}
GROUPED = {
    name: query
    for name, (card, query, _) in ALL.items()
    if query.get("group_by") and card == "people"
}
NOISE = SystemRandom()


@dataclass
class Registry:
    """A catalogue of one dataset, whose source does not exist anywhere."""

    found: Dataset

    async def grant(self, name: str, holders: tuple[str, ...]) -> Grant:
        if name != self.found.name or not holders:
            raise NoGrant("none")
        return Grant(self.found, frozenset({"approximate"}))

    async def dataset(self, name: str) -> Dataset:
        if name != self.found.name:
            raise NoGrant("none")
        return self.found


def dataset(card: Json, *, engine: str = "duckdb", number: int = 1) -> Dataset:
    version = Version("v_none", number, digest="", seed="secret")
    source = Source(engine, "no/such/file.csv", "no_connection")
    declared = Card.model_validate(card)
    return Dataset(
        "d_1", "people", "", "b_1", declared, source, version, closed=False, created_at=0
    )


class Rehearsals:
    def __init__(self, home: Path) -> None:
        self.home = home

    def action(self, found: Dataset, **more: Any) -> RehearseQuery:
        (self.home / "tmp").mkdir(exist_ok=True)
        catalogue: Any = Registry(found)
        tables = DuckDBMadeUpTables.within(self.home)
        threads = PlanningThreads(), PlanningThreads(1, 2, "rehearsal")
        return RehearseQuery(catalogue, Planner(), *threads, tables, NOISE, NOISE, **more)

    def __call__(
        self,
        found: Dataset,
        query: Json,
        mechanism: Json | None = None,
        *,
        principal: Principal = ANN,
        **more: Any,
    ) -> Json:
        body = {"dataset": "people", "query": query, "privacy": BOTH, "mechanism": mechanism}
        question = AssumedQuestion.model_validate({**body, **more})
        reply = asyncio.run(self.action(found)(principal, question))
        return dict(json.loads(json.dumps(reply, allow_nan=False)))


@pytest.fixture
def rehearse(tmp_path: Path) -> Rehearsals:
    return Rehearsals(tmp_path)


@pytest.mark.parametrize("title", ALL)
def test_every_kind_and_mechanism_is_rehearsed(rehearse: Rehearsals, title: str) -> None:
    card, query, mechanism = ALL[title]
    reply = rehearse(dataset(CARDS[card]), query, mechanism, assume={"rows": 300})
    assert (reply["status"], reply["made_up"], reply["rows"]) == ("rehearsed", True, 300)
    assert reply["outcome"] in ("answered", "withheld")
    assert (reply["value"] is not None) == (reply["outcome"] == "answered")
    assert (reply["id"], reply["receipt"]) == (None, None)
    charged = reply["charged"]
    assert (charged["epsilon"], charged["delta"], charged["accounts"]) == (0, 0, [])
    assert charged["price"]["epsilon"] > 0
    assert not [path for path in rehearse.home.rglob("*") if path.is_file()]


def test_no_kind_is_left_out_and_groups_are_there() -> None:
    assert {query["kind"] for _, query, _ in ALL.values()} == set(QUERIES)
    assert GROUPED


@pytest.mark.parametrize("engine", ["duckdb", "postgresql", "spark"])
def test_the_source_may_be_away_for_every_engine(rehearse: Rehearsals, engine: str) -> None:
    """Noise at epsilon 5 exceeds 30 with probability below 1e-60."""
    reply = rehearse(dataset(CARDS["people"], engine=engine), {"kind": "count"})
    assert abs(reply["value"] - 1_000) <= 30


@pytest.mark.parametrize("number", [1, 3, 4_000])
def test_made_up_rows_come_in_epochs(rehearse: Rehearsals, number: int) -> None:
    found = dataset(CARDS["by_arrival"], number=number)
    first = {"kind": "count", "where": {"column": "arrival", "op": "==", "value": 1}}
    reply = rehearse(found, first, assume={"rows": 800})
    assert abs(reply["value"] - 800 / min(number, 8)) <= 31


def test_a_public_number_of_rows_is_kept_or_replaced(rehearse: Rehearsals) -> None:
    found = dataset(CARDS["fixed"])
    query = {"kind": "ratio", "numerator": {"where": {"column": "age", "op": ">=", "value": 0}}}
    assert rehearse(found, query)["rows"] == found.card.rows
    assert rehearse(found, query, assume={"rows": 77})["rows"] == 77
    large = dataset({**CARDS["fixed"], "rows": 10**9})
    assert rehearse(large, query)["rows"] == 10_000


def test_rows_are_limited_by_the_number_of_columns(rehearse: Rehearsals) -> None:
    with pytest.raises(Invalid) as caught:
        rehearse(dataset(CARDS["people"]), {"kind": "count"}, assume={"rows": 10_001})
    assert caught.value.fields[0].pointer == "/assume/rows"
    wide = [{"name": f"c{i}", "type": "boolean"} for i in range(400)]
    card = {"person": {"kind": "row"}, "neighbours": "add_remove", "columns": wide}
    assert rehearse(dataset(card), {"kind": "count"})["rows"] == 500


def test_auditors_rehearse_and_strangers_do_not(rehearse: Rehearsals) -> None:
    found = dataset(CARDS["people"])
    for role in (Role.ADMIN, Role.VIEWER):
        reply = rehearse(found, {"kind": "count"}, principal=Principal("x", "x", role, "k"))
        assert reply["status"] == "rehearsed"
    body = {"dataset": "none", "query": {"kind": "count"}, "privacy": BOTH}
    unknown = AssumedQuestion.model_validate(body)
    with pytest.raises(NoGrant):
        asyncio.run(rehearse.action(found)(ANN, unknown))
    with pytest.raises(NotFound):
        asyncio.run(rehearse.action(found)(Principal("x", "x", Role.VIEWER, "k"), unknown))


def test_a_rehearsal_that_takes_too_long_ends(rehearse: Rehearsals) -> None:
    _, query, mechanism = ALL["logistic regression, learned"]
    body = {"dataset": "people", "query": query, "privacy": BOTH, "mechanism": mechanism}
    action = rehearse.action(dataset(CARDS["people"]), limit_seconds=0.0)
    with pytest.raises(EngineFailed, match="Nothing was charged"):
        asyncio.run(action(ANN, AssumedQuestion.model_validate(body)))


def test_one_analyst_cannot_fill_the_queue(rehearse: Rehearsals) -> None:
    """One runs and two wait; the others are refused."""
    action = rehearse.action(dataset(CARDS["people"]))
    body = {"dataset": "people", "query": {"kind": "count"}, "privacy": BOTH}
    question = AssumedQuestion.model_validate({**body, "assume": {"rows": 10_000}})

    async def many() -> list[Any]:
        calls = [action(ANN, question) for _ in range(20)]
        return list(await asyncio.gather(*calls, return_exceptions=True))

    replies = asyncio.run(many())
    refused = [reply for reply in replies if isinstance(reply, TooManyRunning)]
    assert 10 <= len(refused) <= 18
    assert all(reply["status"] == "rehearsed" for reply in replies if reply not in refused)
