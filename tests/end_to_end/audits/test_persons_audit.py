"""Black-box audits of questions about persons: one person adds as many rows as may count.

Bounds, events and the error of each bound are those of audit_bounds.py. So all bounds here together
are wrong with probability below 1e-6 too.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from typing_extensions import override

from tests.audit import cases as audited_cases
from tests.conftest import Counts, Template
from tests.end_to_end.audits.audit_bounds import RUNS, Tables, audited
from tests.end_to_end.audits.audit_case import Case, Rows, value
from tests.end_to_end.audits.planted_bugs import QUIET
from tests.server import COLUMNS, HEADER, Json, World, made

pytestmark = [pytest.mark.statistical, pytest.mark.invariant("I24")]
SEVERAL: Json = {"kind": "column", "column": "id", "rows_max": 3}


def row(who: str, age: int = 30, region: str = "north") -> tuple[object, ...]:
    return who, age, 1000, region, "true", "2021-01-01"


def together(answer: Json) -> float:
    """Sum over all groups with a person, so that a contribution to any group shows."""
    regions = {row[3] for row in COMES}
    by_region = {group["group"]["region"]: group["value"] for group in answer["value"]}
    return float(sum(by_region[region] for region in sorted(map(str, regions))))


BEFORE: Rows = (row("a"), row("a", 90), row("b", 20, "south"))
COMES: Rows = (row("c", 120), row("c", 120, "south"), row("c", 120, "east"))
PER_PERSON: Json = {"column": "age", "per_person": {"low": 0, "high": 120}}
ASKED: dict[str, tuple[Json, Rows, Rows]] = {
    "persons": ({"kind": "count_distinct"}, BEFORE, (*BEFORE, *COMES)),
    "persons of groups": (
        {"kind": "count_distinct", "group_by": ["region"]},
        BEFORE,
        (*BEFORE, *COMES),
    ),
    "persons kept to one group": (
        {"kind": "count_distinct", "group_by": ["region"], "groups_max": 1},
        BEFORE,
        (*BEFORE, *COMES),
    ),
    "sum of a person": ({"kind": "sum", **PER_PERSON}, BEFORE, (*BEFORE, *COMES)),
    "sums kept to one group": (
        {"kind": "sum", **PER_PERSON, "group_by": ["region"], "groups_max": 1},
        BEFORE,
        (*BEFORE, *COMES),
    ),
    "mean of persons": ({"kind": "mean", **PER_PERSON}, (row("a", 0),), (row("a", 0), *COMES)),
}


def cases() -> Iterator[tuple[str, Case]]:
    for kind, loss in (("laplace", "1.5"), ("gaussian", "0.5")):
        for name, (query, one, other) in ASKED.items():
            read = together if "group_by" in query else value
            yield f"{name}-{kind}", Case(query, {"kind": kind}, one, other, read, loss=loss)


CASES = dict(cases())


class PersonTables(Tables):
    """Tables whose rows begin with the person's id."""

    @override
    def name(self, rows: Rows, neighbours: str) -> str:
        if (rows, neighbours) not in self._names:
            path = self.world.write_csv(rows, ["id", *HEADER])
            dataset = self.world.dataset(
                path, neighbours=neighbours, columns=COLUMNS, person=SEVERAL
            )
            for holder in ("*", self.person.name):
                budget = {"currency": "zcdp", "rho": 1_000_000, "delta": "1e-6"}
                made(self.world.admin.put(f"/v1/datasets/{dataset}/budgets/{holder}", json=budget))
            self._names[rows, neighbours] = dataset
        return self._names[rows, neighbours]


@pytest.fixture(scope="module")
def tables(live: World) -> PersonTables:
    return PersonTables(live)


SUITE = {"persons-laplace", "persons kept to one group-laplace", "mean of persons-gaussian"}


@pytest.mark.parametrize("name", audited_cases(CASES, SUITE))
def test_a_person_with_several_rows_shows_no_more_loss_than_was_charged(
    tables: PersonTables, name: str, counts: Counts
) -> None:
    bound, charge = audited(tables, CASES[name])
    print(f"{name}: at least {bound:.2f}, charged {charge:.2f}")
    assert bound <= charge
    counts("answers audited over HTTP", 2 * RUNS)


EVERY_GROUP = """
import app.engines.sql.person_aggregates as aggregates
from dataclasses import replace
kept = aggregates.of_persons
aggregates.of_persons = lambda layout, tally, *more: kept(
    layout, replace(tally, groups_max=None), *more
)
import app.engines.sql.tally_statement as sql
sql.of_persons = aggregates.of_persons
"""


@pytest.mark.saboteur
@pytest.mark.parametrize(
    ("sabotage", "names"),
    [
        pytest.param(QUIET, ["persons-laplace"], id="too little noise"),
        pytest.param(EVERY_GROUP, ["persons kept to one group-laplace"], id="kept to no group"),
    ],
)
def test_a_server_that_lets_a_person_count_for_more_is_caught(
    peopled: Template, tmp_path: Path, sabotage: str, names: list[str], counts: Counts
) -> None:
    world = peopled("sqlite", tmp_path / "ledger")
    try:
        world.serve(sabotage=sabotage)
        tables = PersonTables(world)
        for name in names:
            bound, charge = audited(tables, CASES[name], runs=2500)
            print(f"{name}: at least {bound:.2f}, charged {charge:.2f}")
            assert bound > charge, name
            counts("answers of saboteurs", 5000)
    finally:
        world.ledger.stop()
