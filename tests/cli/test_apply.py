"""`bursard apply`: a file describes the state, and applying it again changes nothing."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from app.cli.opened import current_ledger
from app.settings import Settings
from tests.bursard import Ledger
from tests.cli.dataset_commands import write_csv
from tests.cli.running import Done, run_here
from tests.cli.terminal import Terminal
from tests.server import COLUMNS, World, ask, count, made, new_key

PEOPLE = """\
reason: study 12
people:
  - name: ada
    groups: [team]
  - {name: vera, role: viewer}
"""
BUDGETS = """\
budgets:
  - {dataset: census, holder: "*", currency: approximate, epsilon: 3, delta: 1e-6}
  - {dataset: census, holder: ada, currency: pure, epsilon: 0.1}
  - {dataset: census, holder: "group:team", currency: zcdp, rho: 0.5, delta: 0.000001}
  - {dataset: census, holder: bob, currency: renyi, epsilon: 1, delta: 1e-6}
"""


def datasets(**changes: Any) -> str:
    card = {
        "name": "census",
        "source": {"path": "people.csv"},
        "person": {"kind": "row"},
        "neighbours": "add_remove",
        "columns": COLUMNS,
        **changes,
    }
    return f"datasets:\n  - {json.dumps(card)}\n"


@pytest.fixture
def applied(store: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Applied":
    """A ledger on each store in turn, with a data file and without people."""
    for name, value in store.environment().items():
        monkeypatch.setenv(name, value)
    write_csv(store.data / "people.csv")
    return Applied(store, tmp_path / "state.yaml")


class Applied:
    def __init__(self, ledger: Ledger, path: Path) -> None:
        self.ledger, self.path = ledger, path

    def __call__(self, text: str, *options: str) -> Done:
        self.path.write_text(text)
        return run_here("apply", str(self.path), *options)

    def entries(self) -> list[dict[str, Any]]:
        with current_ledger(Settings.from_environment()) as stores:
            kinds = "'analyst_created', 'analyst_changed', 'grant', 'dataset_registered'"
            with stores.database.reading() as connection:
                rows = connection.exec_driver_sql(
                    f"SELECT text FROM entries WHERE kind IN ({kinds}, 'dataset_changed') "
                    "ORDER BY at, book_id, seq"
                ).all()
        return [json.loads(row.text) for row in rows]


WHOLE = PEOPLE + "  - {name: bob}\n" + datasets() + BUDGETS


def test_a_file_is_applied_and_applying_it_again_changes_nothing(applied: Applied) -> None:
    dry = applied(WHOLE, "--dry-run")
    assert (dry.returncode, applied.entries()) == (0, [])
    rows = list(csv.DictReader(io.StringIO(dry.stdout)))
    assert {row["action"] for row in rows} == {"create"}
    done = applied(WHOLE, "--yes")
    assert done.returncode == 0, done.stderr
    assert "8 changes made." in done.stderr
    assert "bursard keys issue" in done.stderr
    entries = applied.entries()
    assert len(entries) == 8
    assert {entry["actor"] for entry in entries} == {"operator"}
    assert {entry["body"]["reason"] for entry in entries} == {"study 12"}
    terms = {
        entry["body"]["holder"]: entry["body"]["after"]["terms"]
        for entry in entries
        if entry["kind"] == "grant"
    }
    assert terms["ada"]["epsilon"] == 100_000_000_000, "exactly 0.1"
    assert terms["*"]["delta"] == 10**12, "1e-6 is a number"
    again = applied(WHOLE, "--yes", "--json")
    assert (again.returncode, again.stdout) == (0, "[]\n")
    assert "nothing to change" in again.stderr
    assert len(applied.entries()) == 8


def test_what_was_applied_can_be_asked_and_then_changed(applied: Applied) -> None:
    applied(WHOLE, "--yes")
    key = run_here("keys", "issue", "ada").stdout.strip()
    world = World(applied.ledger)
    made(ask(world.server.client(key), count("census", "0.05"), new_key()))
    assert applied(WHOLE, "--yes").stdout.count("\n") == 1, "a spend is no difference"
    changed = applied(WHOLE.replace("epsilon: 0.1}", "epsilon: 0.2}"), "--yes", "--json")
    assert json.loads(changed.stdout) == [
        {
            "action": "change",
            "what": "budget of ada on census",
            "field": "epsilon",
            "before": 0.1,
            "after": 0.2,
        }
    ]
    made(ask(world.server.client(key), count("census", "0.1"), new_key()))
    world.must_be_sound()


@pytest.mark.parametrize(
    ("before", "after", "loses"),
    [
        ("epsilon: 0.1}", "epsilon: 0.05}", "a part of epsilon"),
        ("epsilon: 3, delta: 1e-6}", "epsilon: 3, delta: 1e-7}", "a part of delta"),
        ("groups: [team]", "enabled: false", "all access"),
        ("groups: [team]", "groups: [other, team2]", "the group team"),
        ("role: viewer", "role: viewer, enabled: false", "all access"),
        ('"neighbours"', '"status": "closed", "neighbours"', "every new question"),
    ],
)  # fmt: skip
def test_nothing_is_taken_away_unless_it_is_allowed(
    applied: Applied, before: str, after: str, loses: str
) -> None:
    plain = WHOLE.replace('  - {dataset: census, holder: "group:team", currency: zcdp, rho: 0.5, delta: 0.000001}\n', "")  # fmt: skip  # noqa: E501
    assert applied(plain, "--yes").returncode == 0
    number = len(applied.entries())
    assert plain.count(before) == 1
    lower = plain.replace(before, after)
    refused = applied(lower, "--yes")
    assert (refused.returncode, len(applied.entries())) == (2, number)
    assert loses in refused.stderr
    assert "--allow-lower" in refused.stderr
    done = applied(lower, "--yes", "--allow-lower")
    assert (done.returncode, len(applied.entries())) == (0, number + 1), done.stderr
    assert applied(lower, "--yes").returncode == 0


def test_the_file_may_allow_one_item_to_lose_something(applied: Applied) -> None:
    applied(PEOPLE, "--yes")
    both = PEOPLE.replace("groups: [team]", "enabled: false\n    allow_lower: true")
    assert applied(both, "--yes").returncode == 0
    other = both.replace("role: viewer", "enabled: false")
    assert applied(other, "--yes").returncode == 2, "it allows ada only"
    enabled = applied(PEOPLE.replace("groups", "enabled: true\n    groups"), "--yes")
    assert enabled.returncode == 0


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("people:\n  - name: ada\n    gruops: [a]\n", 3, "did you mean 'groups'?"),
        ("poeple: []\n", 1, "did you mean 'people'?"),
        (datasets(neigbours="x"), 2, "did you mean 'neighbours'?"),
        ("people:\n  - name: ada\n\n  - name: ADA\n", 4, "this person is there twice"),
        ("people:\n  - name: ada\n    name: bob\n", 3, "this field is there twice"),
        ("people:\n  - role: analyst\n", 2, "this field is needed"),
        ("people:\n  - name: a\n    role: king\n", 3, "/people/0/role"),
        ("people:\n  - name: a/b\n", 2, "must not contain"),
        ("people:\n  - name: 7\n", 2, "valid string"),
        ("people:\n  - name: !!python/object/apply:os.system [ls]\n", 2, "tags are not read"),
        ("people:\n  - &a {name: ada}\n  - *a\n", 2, "aliases"),
        ("people: [\n", 2, "not valid YAML"),
        (BUDGETS, 2, "There is no dataset of this name."),
        ("- people\n", 1, "the file"),
        (PEOPLE + datasets() + BUDGETS, 12, "There is no analyst of this name."),
        (PEOPLE + datasets() + BUDGETS.replace("ada", "vera"), 10, "a budget is for an analyst"),
        (PEOPLE + datasets() + BUDGETS.replace("epsilon: 0.1", "rho: 1"), 10, "/budgets/1/"),
    ],
)  # fmt: skip
def test_wrong_files_are_refused_with_file_and_line(
    ledger: Ledger, tmp_path: Path, text: str, line: int, message: str
) -> None:
    path = tmp_path / "state.yaml"
    path.write_text(text)
    done = run_here("apply", str(path), "--yes")
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith(f"bursard: {path}:{line}: "), done.stderr
    assert message in done.stderr


def test_a_registered_card_does_not_change(applied: Applied) -> None:
    assert applied(datasets(), "--yes").returncode == 0
    for changes in ({"neighbours": "replace_one", "rows": 60}, {"source": {"path": "other.csv"}}):
        refused = applied(datasets(**changes), "--yes")
        assert refused.returncode == 2
        assert "keeps its card and source" in refused.stderr
    described = applied(datasets(description="Persons", status="open"), "--yes")
    assert (described.returncode, "1 change made." in described.stderr) == (0, True)
    assert applied(datasets(), "--yes").stdout.count("\n") == 1, "what is left out stays"


def test_a_failure_on_the_way_keeps_what_was_done_and_says_so(applied: Applied) -> None:
    (applied.ledger.data / "people.csv").unlink()
    failed = applied(WHOLE, "--yes")
    assert failed.returncode == 2
    assert "3 of 8 changes were made." in failed.stderr
    write_csv(applied.ledger.data / "people.csv")
    assert "5 changes made." in applied(WHOLE, "--yes").stderr


def test_the_same_rows_under_a_new_name_never_change_a_budget_unseen(applied: Applied) -> None:
    applied(WHOLE, "--yes")
    other = (datasets(name="twin") + BUDGETS).replace("census", "twin").replace("0.1}", "0.01}")
    stopped = applied(other, "--yes")
    assert stopped.returncode == 2
    assert "another budget is there now" in stopped.stderr
    refused = applied(other, "--yes")
    assert "would lose a part of epsilon" in refused.stderr


def test_the_operator_is_asked_on_a_terminal(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "state.yaml"
    path.write_text(PEOPLE)
    silent = run_here("apply", str(path))
    assert (silent.returncode, "--yes" in silent.stderr) == (2, True)
    for answer, code, people in (("n", 1, 0), ("y", 0, 2)):
        terminal = Terminal(ledger, "apply", str(path))
        terminal.wait_for("Make these 2 changes?")
        terminal.say(answer)
        terminal.wait_for("made." if people else "Nothing was changed.")
        assert terminal.end() == code
        assert ledger.rows("SELECT count(*) FROM analysts") == [(people,)]
