"""The table of `make audit` holds exactly the results of the tests."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.audit import INVARIANTS, Row, cases, joined, runs, table
from tests.bursard import CHECKOUT

TESTS = """
import pytest

pytestmark = pytest.mark.invariant("I24")

def test_honest(record_property):
    record_property("counts answers", 800)

@pytest.mark.saboteur
def test_saboteur_seen():
    pass

@pytest.mark.saboteur
def test_saboteur_unseen():
    assert False

@pytest.mark.invariant("I1")
def test_no_setup(nothing_of_this_name):
    pass

@pytest.mark.skip
def test_left_out():
    pass
"""
NOTHING_OF_OURS = "def test_other():\n    pass\n"


def test_the_table_holds_the_results_of_the_tests(tmp_path: Path) -> None:
    file = tmp_path / "table" / "audit.json"
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    invariant(n)\n    saboteur\n")
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "test_others.py").write_text(NOTHING_OF_OURS)
    words = ["-p", "tests.audit", f"--audit-json={file}", "-n", "2", "--rootdir", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, str(tmp_path)],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stdout
    audited = "I24 a mechanism's audited lower bound stays below the charge"
    within = "I1 an account's spend stays within its limit"
    rows = json.loads(file.read_text())
    for row in rows:
        row["test"] = row["test"].removeprefix("test_some.py::")
    keys = ["invariant", "test", "size", "result", "saboteur_caught"]
    assert rows == [
        dict(zip(keys, row, strict=True))
        for row in [
            (within, "test_no_setup", None, "failed", None),
            (audited, "test_honest", "800 answers", "passed", None),
            (audited, "test_left_out", None, "skipped", None),
            (audited, "test_saboteur_seen", None, "passed", True),
            (audited, "test_saboteur_unseen", None, "failed", False),
        ]
    ]
    assert "SABOTEUR NOT CAUGHT" in done.stdout
    assert "5 tests of invariants" in done.stdout


def test_a_test_that_fails_in_teardown_has_failed() -> None:
    called = Row("I1 a", "t", "3 charges", "passed", True)
    ended = Row("I1 a", "t", "3 charges", "failed", False)
    assert joined(called, ended) == joined(ended, called) == ended
    assert "FAILED" in table([ended])


def test_the_size_of_an_audit_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AUDIT_RUNS", raising=False)
    assert runs(400) == 400
    monkeypatch.setenv("AUDIT_RUNS", "5000")
    assert runs(400) == 5000


def test_every_case_is_audited_and_some_are_in_the_suite() -> None:
    one, other = cases(["a", "b"], {"b"})
    assert [mark.name for mark in one.marks] == ["audit"]
    assert not other.marks
    with pytest.raises(AssertionError):
        cases(["a", "b"], {"c"})


def test_every_invariant_named_by_a_test_has_a_description() -> None:
    """Otherwise `make audit`, which runs seldom, ends before its first test."""
    files = Path(__file__).parents[1].rglob("test_*.py")
    named = {name for file in files for name in re.findall(r'invariant\("(\w+)"', file.read_text())}
    assert named <= set(INVARIANTS)
    assert "I42" in named
