"""`make audit`: every test of an invariant, with long runs, and a table of the results.

A pytest plugin (`-p tests.audit`). Tests name their invariant by a mark; the counts they print are
their size. The same table goes to build/audit.json, one object per test.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pytest

FILE = Path(__file__).parents[1] / "build" / "audit.json"
RUNS = "AUDIT_RUNS"
INVARIANTS = {
    "I1": "an account's spend stays within its limit",
    "I2": "a dataset's spend over all analysts stays within its limit",
    "I3": "what is spent is the sum of the entries",
    "I4": "spend falls only by a void, before data were asked",
    "I5": "one request key has one charge at most",
    "I13": "nothing made of data leaves before its charge is durable",
    "I14": "a charge has at most one stored answer, and every reply repeats it",
    "I16": "an attempt that is not current neither stores nor sends",
    "I17": "an error forfeits the charge; only a vanished worker allows another attempt",
    "I22": "responses leave at public times",
    "I24": "a mechanism's audited lower bound stays below the charge",
    "I27": "others' charges, answers and names are invisible; unknown and forbidden look alike",
    "I29": "a withdrawn name keeps its ledger and never returns with fresh budget",
    "I34": "an acknowledged charge survives a kill, of the database too, and a full disk",
    "I35": "verify finds any edit, removal or reordering",
    "I36": "a ledger behind its anchor refuses to charge until the loss is booked",
    "I42": "refused requests leave the ledger unchanged",
}


def runs(usual: int) -> int:
    """Number of answers per side: the default, or AUDIT_RUNS."""
    return int(os.environ.get(RUNS, usual))


def cases(names: Iterable[str], suite: set[str]) -> list[Any]:
    """Parameters of a test: all in `make audit`, and those of `suite` in `make test` too."""
    every = list(names)
    assert suite <= set(every), suite - set(every)
    alone = pytest.mark.audit
    return [pytest.param(name, marks=() if name in suite else alone) for name in every]


@dataclass(frozen=True)
class Row:
    """The result of one test."""

    invariant: str
    test: str
    size: str | None  # its counts
    result: Literal["passed", "failed", "skipped"]
    saboteur_caught: bool | None  # None if it plants no bug


def row_of(report: pytest.TestReport) -> Row | None:
    """The row of one phase of a test; None if it has no invariant."""
    properties = dict(report.user_properties)
    if "invariant" not in properties:
        return None
    counted = [
        f"{number} {str(name).removeprefix('counts ')}"
        for name, number in report.user_properties
        if name.startswith("counts ")
    ]
    caught = report.passed if properties["saboteur"] and not report.skipped else None
    return Row(
        f"{properties['invariant']} {INVARIANTS[str(properties['invariant'])]}",
        report.nodeid,
        ", ".join(counted) or None,
        report.outcome,
        caught,
    )


def joined(first: Row, then: Row) -> Row:
    """Combine two phases: a test passes if all of them do, and the last counts are kept."""
    if first.result == "passed":
        return then
    return replace(first, size=then.size)


def table(rows: Iterable[Row]) -> str:
    lines = []
    for row in rows:
        caught = {None: "", True: "saboteur caught", False: "SABOTEUR NOT CAUGHT"}
        result = row.result if row.result == "passed" else row.result.upper()
        name = row.test.removeprefix("tests/")
        lines.append(f"{row.invariant.split()[0]:4} {result:8} {name}")
        beside = "; ".join(filter(None, (row.size, caught[row.saboteur_caught])))
        lines += [f"{'':13} {beside}"] if beside else []
    return "\n".join(lines)


def write(rows: Iterable[Row], file: Path) -> None:
    file.parent.mkdir(exist_ok=True)
    content = [asdict(row) for row in rows]
    file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def position(row: Row) -> tuple[int, str]:
    """Sort key of a row in the table."""
    return int(row.invariant.split()[0].removeprefix("I")), row.test


# The plugin


class Audit:
    """Results so far; only in the controlling process, not in xdist's workers."""

    def __init__(self, file: Path) -> None:
        self.rows: dict[str, Row] = {}
        self._file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        row = row_of(report)
        if row is not None:
            before = self.rows.get(row.test)
            self.rows[row.test] = row if before is None else joined(before, row)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        rows = sorted(self.rows.values(), key=position)
        write(rows, self._file)
        terminalreporter.section("audit")
        terminalreporter.write_line(table(rows))
        terminalreporter.write_line(f"{len(rows)} tests of invariants; written to {self._file}")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--audit-json", type=Path, default=FILE, help="where the table goes as JSON")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Audit(config.getoption("audit_json")), "audit table")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        mark = item.get_closest_marker("invariant")
        if mark is not None:
            (number,) = mark.args
            assert number in INVARIANTS, f"{item.nodeid}: {number}"
            saboteur = item.get_closest_marker("saboteur") is not None
            item.user_properties += [("invariant", number), ("saboteur", saboteur)]
