"""Schemathesis against a live server: replies to all generated requests match the description.

One check is left out. `positive_data_acceptance` expects the server to accept every body that fits
the schema. A schema cannot say that a dataset is registered, a file exists or a cursor came from
the server.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Counts, Template
from tests.server import World

SECONDS = 25
CALCULATOR = "/v1/accounting/compose"  # it computes, so it would take the time of the others
EVENTS = "/v1/budgets/events"  # a reply that goes on: test_budget_events.py reads it
EXCLUDED = "positive_data_acceptance"
# Schemathesis spends minutes on two kinds of lists, without checking its deadline. The first are
# lists that violate a recursive schema, such as a filter: they are generated near the top only. The
# second are lists beyond their maximum length, made by copying an item: none gets more than 20,000
# values. test_crowding.py sends such bodies. Sometimes it cannot generate the items of a list; that
# list is skipped.
SCHEMATHESIS = """
import hypothesis.strategies
from schemathesis.cli import schemathesis
from schemathesis.generation.jsonschema import strategy

made, within, copied = strategy._with_fixed_elements, [], strategy._tiled
repeated = strategy._repeated

def shallow(schema, view, context):
    if len(within) > 3:
        raise strategy.UnsupportedSchema("it holds itself")
    within.append(None)
    try:
        return made(schema, view, context)
    finally:
        within.pop()

def values(item):
    parts = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
    return 1 + sum(map(values, parts))

def bounded(item, length):
    if values(item) * length > 20_000:
        hypothesis.reject()
    return copied(item, length)

def repeated_if_possible(*arguments, **options):
    try:
        return repeated(*arguments, **options)
    except strategy.InvalidSchema:
        return hypothesis.strategies.nothing()

strategy._with_fixed_elements, strategy._tiled = shallow, bounded
strategy._repeated = repeated_if_possible
schemathesis()
"""


@pytest.mark.parametrize(
    ("who", "paths", "least"),
    [
        # Least number of requests.
        ("admin", ("--exclude-path", CALCULATOR, "--exclude-path", EVENTS), 100),
        ("ada", ("--exclude-path", CALCULATOR, "--exclude-path", EVENTS), 100),
        ("ada", ("--include-path", CALCULATOR), 20),
    ],
    ids=["admin", "ada", "the calculator"],
)
def test_every_reply_to_generated_requests_matches_the_description(
    peopled: Template,
    who: str,
    paths: tuple[str, ...],
    least: int,
    tmp_path: Path,
    counts: Counts,
) -> None:
    # A separate world, since a generated request may lock out every administrator.
    world = peopled("sqlite", tmp_path / "ledger")
    try:
        # A busy machine makes fewer requests in the same time, so the test continues with other
        # seeds.
        generated = 0
        for seed in range(1, 21):
            generated += _every_reply_is_as_described(world, who, paths, tmp_path, seed)
            if generated > least:
                break
        assert generated > least
        counts("requests made by schemathesis", generated)
    finally:
        world.ledger.stop()


def _every_reply_is_as_described(
    world: World, who: str, paths: tuple[str, ...], tmp_path: Path, seed: int
) -> int:
    key = world.people["ada"].key if who == "ada" else world.ledger.admin_key
    command = [
        *(sys.executable, "-c", SCHEMATHESIS, "run", f"{world.server.url}/openapi.json"),
        *("--header", f"Authorization: Bearer {key}"),
        *("--exclude-checks", EXCLUDED),
        *("--max-time", str(SECONDS), "--max-examples", "10", "--seed", str(seed)),
        *("--continue-on-failure", "--no-color", "--warnings", "off"),
        *paths,
    ]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-2000:]
    generated = re.search(r"(\d+) generated", ran.stdout)
    assert generated is not None
    assert world.server.client().get("/readyz").status_code == 200
    assert "unexpected" not in world.server.output()
    assert "sound" in world.ledger.bursard("verify").stdout
    return int(generated[1])


def test_every_operation_is_described_with_its_problems_and_a_stable_id(live: World) -> None:
    described = live.server.client().get("/openapi.json").json()
    operations = [op for path in described["paths"].values() for op in path.values()]
    ids = [op["operationId"] for op in operations]
    assert len(ids) == len(set(ids))
    assert {"ask", "preview", "grant_budget", "register_dataset", "verify_ledger"} <= set(ids)
    for op in operations:
        public = "security" not in op
        assert public or {"401", "403"} <= set(op["responses"])
        for status, response in op["responses"].items():
            if int(status) >= 400:
                assert list(response["content"]) == ["application/problem+json"]
