"""`make audit`: every test of an invariant, with long runs, and a table of what each of them said.

A pytest plugin (`-p tests.audit`). Tests name their invariant by a mark; what they print as counts
is their size. The same table goes to build/audit.json, one object for each test.
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
    "I14": "a charge has one stored answer at most, told alike each time",
    "I16": "an attempt that is not current neither stores nor sends",
    "I17": "an error forfeits the charge; only a vanished worker allows another attempt",
    "I22": "responses leave on a fixed time grid",
    "I24": "a mechanism's audited lower bound stays below the charge",
    "I29": "a deleted dataset keeps its ledger, and a name never returns with fresh budget",
    "I34": "an acknowledged charge survives a kill, of the database too, and a full disk",
    "I35": "verify finds any edit, removal or reordering",
    "I36": "a ledger behind its anchor refuses to charge until the loss is booked",
    "I42": "refused requests leave the ledger unchanged",
}


def runs(usual: int) -> int:
    """How often an audit asks of each side: so often, or as AUDIT_RUNS says."""
    return int(os.environ.get(RUNS, usual))


def cases(names: Iterable[str], suite: set[str]) -> list[Any]:
    """Parameters of a test: all in `make audit`, and those of `suite` in `make test` too."""
    every = list(names)
    assert suite <= set(every), suite - set(every)
    alone = pytest.mark.audit
    return [pytest.param(name, marks=() if name in suite else alone) for name in every]


@dataclass(frozen=True)
class Row:
    """What one test said."""

    invariant: str
    test: str
    size: str | None  # what it counted
    result: Literal["passed", "failed", "skipped"]
    saboteur_caught: bool | None  # None if it plants no bug


def row_of(report: pytest.TestReport) -> Row | None:
    """What a phase of a test says of it; None if it has no invariant."""
    told = dict(report.user_properties)
    if "invariant" not in told:
        return None
    counted = [
        f"{number} {str(name).removeprefix('counts ')}"
        for name, number in report.user_properties
        if name.startswith("counts ")
    ]
    caught = report.passed if told["saboteur"] and not report.skipped else None
    return Row(
        f"{told['invariant']} {INVARIANTS[str(told['invariant'])]}",
        report.nodeid,
        ", ".join(counted) or None,
        report.outcome,
        caught,
    )


def joined(first: Row, then: Row) -> Row:
    """Of two phases: a test passes if all of them do, and has counted what the last says."""
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


def place(row: Row) -> tuple[int, str]:
    """Where it stands in the table."""
    return int(row.invariant.split()[0].removeprefix("I")), row.test


# The plugin


class Audit:
    """What was said so far; only where the tests are counted, not in xdist's workers."""

    def __init__(self, file: Path) -> None:
        self.rows: dict[str, Row] = {}
        self._file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        row = row_of(report)
        if row is not None:
            before = self.rows.get(row.test)
            self.rows[row.test] = row if before is None else joined(before, row)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        rows = sorted(self.rows.values(), key=place)
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
