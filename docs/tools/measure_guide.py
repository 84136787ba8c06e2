"""Measure the errors in docs/guide/mechanisms.md on the demo census: `make plots`.

Every question is planned and read once, as the service does it, and its answer is drawn many times.
An error is the distance to the answer without noise. DuckDB and numpy compute that answer from the
file, with values clamped to the card's bounds. The noise comes from the system's generator, which
takes no seed. So the last digit differs from run to run.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from app.actions.asking.engine_data import EngineData
from app.demo import census
from app.demo.cards import CENSUS
from app.mechanisms.sampling.system import SystemRandom
from app.planning.plan import make_plan
from app.planning.request import Question
from benchmarks.harness.prepared import Bench, card_of, prepared
from benchmarks.harness.servers import TOP

PAGE = TOP / "docs" / "guide" / "mechanisms.md"
MEASURED = TOP / "docs" / "guide" / "measured.json"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
RUNS, RUNS_SLOW = 1000, 200
EPSILON, DELTA, RHO = "0.1", "1e-6", "0.005"
PRICES: dict[str, dict[str, str]] = {
    "epsilon": {"epsilon": EPSILON},
    "epsilon, delta": {"epsilon": EPSILON, "delta": DELTA},
    "rho": {"rho": RHO},
}

Errors = Callable[[Any], Iterator[float]]
Way = tuple[str, str, int]  # mechanism, price, repetitions


@dataclass(frozen=True, slots=True)
class Subject:
    """A question, the errors of an answer to it, and the ways to ask it."""

    title: str
    query: dict[str, Any]
    errors: Errors
    ways: Sequence[Way]


@dataclass(frozen=True, slots=True)
class Row:
    """The errors of one question by one mechanism at one price."""

    question: str
    mechanism: str
    price: str
    runs: int
    withheld: int
    median: float
    high: float  # 95 of 100 errors are smaller


def subjects(file: Path) -> list[Subject]:
    """The questions of the table, with the answers without noise."""
    rows = duckdb.connect(":memory:")
    rows.read_parquet(str(file)).create_view("file")
    rows.execute(
        "CREATE VIEW people AS SELECT * "
        "REPLACE (CASE WHEN income > 200000 THEN 200000 ELSE income END AS income) FROM file"
    )

    def numbers(statement: str) -> list[float]:
        return [float(row[0]) for row in rows.execute(statement).fetchall()]

    (elders,) = numbers("SELECT count(*) FROM people WHERE age >= 65")
    (mean,) = numbers("SELECT avg(income) FROM people")
    (middle,) = numbers("SELECT quantile_disc(income, 0.5) FROM people")
    jobs = dict(rows.execute("SELECT occupation, count(*) FROM people GROUP BY 1").fetchall())
    below = numbers("SELECT (SELECT count(*) FROM people WHERE age <= e) FROM range(1, 121) r(e)")
    works = {"column": "employment", "op": "in", "value": ["employed", "self-employed"]}
    old = {"all": [works, {"column": "age", "op": ">=", "value": 65}]}
    paid = dict(
        rows.execute(
            "SELECT occupation, count(*) FROM people "
            "WHERE employment IN ('employed', 'self-employed') AND age >= 65 GROUP BY 1"
        ).fetchall()
    )
    paid.pop(None, None)
    most = max(paid.values())
    table = np.array(
        rows.execute(
            "SELECT 1, age, hours, income FROM people "
            "WHERE age IS NOT NULL AND hours IS NOT NULL AND income IS NOT NULL"
        ).fetchall(),
        dtype=float,
    )
    slope = float(np.linalg.lstsq(table[:, :3], table[:, 3], rcond=None)[0][2])

    def single(exact: float) -> Errors:
        return lambda value: iter([abs(value - exact)])

    def grouped(exact: dict[Any, int]) -> Errors:
        return lambda value: (abs(g["value"] - exact[g["group"]["occupation"]]) for g in value)

    def pointwise(value: Any) -> Iterator[float]:
        return (abs(point["value"] - exact) for point, exact in zip(value, below, strict=True))

    def of_hours(value: Any) -> Iterator[float]:
        return (abs(c["value"] - slope) for c in value["coefficients"] if c["term"] == "hours")

    sums: list[Way] = [(m, p, RUNS) for m, p in _SUMS]
    choices: list[Way] = [("permute_and_flip", "epsilon", RUNS), ("exponential", "epsilon", RUNS)]
    ranks: list[Way] = [
        *choices,
        ("exponential", "rho", RUNS),
        ("smooth_sensitivity", "epsilon", RUNS),
        ("smooth_sensitivity", "epsilon, delta", RUNS),
        ("propose_test_release", "epsilon, delta", RUNS_SLOW),
    ]
    ages = list(range(121))
    elder = {"column": "age", "op": ">=", "value": 65}
    model = {"outcome": "income", "features": ["age", "hours"]}
    return [
        Subject(
            "count of persons of 65 or older, in rows",
            {"kind": "count", "where": elder},
            single(elders),
            sums,
        ),
        Subject(
            "mean income, in money",
            {"kind": "mean", "column": "income"},
            single(mean),
            sums,
        ),
        Subject(
            "histogram of 10 occupations, in rows",
            {"kind": "histogram", "column": "occupation"},
            grouped(jobs),
            sums,
        ),
        Subject(
            "cdf of age at 120 edges, in rows",
            {"kind": "cdf", "column": "age", "edges": ages},
            pointwise,
            [(m, p, RUNS_SLOW) for m, p in _SUMS],
        ),
        Subject(
            "median income, in money",
            {"kind": "median", "column": "income"},
            single(middle),
            ranks,
        ),
        Subject(
            "commonest occupation of those who work at 65, in rows below the best",
            {"kind": "mode", "column": "occupation", "where": old},
            lambda value: iter([float(most - paid.get(value, 0))]),
            [*choices, ("exponential", "rho", RUNS)],
        ),
        Subject(
            "slope of income by hours, in money an hour",
            {"kind": "linear_regression", **model},
            of_hours,
            sums,
        ),
    ]


_SUMS = [("laplace", "epsilon"), ("gaussian", "epsilon, delta"), ("gaussian", "rho")]


def measure(bench: Bench, subject: Subject, way: Way) -> Row:
    mechanism, price, runs = way
    body = {"dataset": "x", "query": subject.query, "privacy": PRICES[price]}
    question = Question.model_validate({**body, "mechanism": {"kind": mechanism}})
    plan = make_plan(question, bench.dataset.card)
    with EngineData(bench.engine, bench.dataset, "bench") as data:
        read = plan.release.read(data)
    noise = SystemRandom()
    answers = [plan.answer(read, noise)["value"] for _ in range(runs)]
    errors = [error for value in answers if value is not None for error in subject.errors(value)]
    withheld = sum(value is None for value in answers)
    median, high = (float(np.quantile(errors, share)) for share in (0.5, 0.95))
    return Row(subject.title, mechanism, price, runs, withheld, median, high)


def table(rows: Sequence[Row]) -> str:
    """The measured rows as Markdown."""
    lines = [
        "| question and unit of its error | mechanism | price | median error | 95 % below | runs |",
        "|---|---|---|---|---|---|",
    ]
    previous = ""
    for row in rows:
        question, previous = ("" if row.question == previous else row.question), row.question
        runs = f"{row.runs:,}" + (f", {row.withheld} withheld" if row.withheld else "")
        cells = [
            question,
            f"`{row.mechanism}`",
            row.price,
            _short(row.median),
            _short(row.high),
        ]
        lines.append(f"| {' | '.join([*cells, runs])} |")
    return "\n".join(lines)


def _short(number: float) -> str:
    """Two digits, which is what the repetitions support."""
    if number == 0:
        return "0"
    return f"{float(f'{number:.2g}'):,.10g}"


def page_with(text: str, rows: Sequence[Row]) -> str:
    """The page with its table replaced."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(rows)}\n{END}{after}"


def read_rows() -> list[Row]:
    return [Row(**row) for row in json.loads(MEASURED.read_text())]


def main() -> None:
    rows = []
    with (
        tempfile.TemporaryDirectory() as folder,
        prepared(Path(folder), card_of(CENSUS), census.write) as bench,
    ):
        for subject in subjects(Path(folder) / "data" / "rows.parquet"):
            for way in subject.ways:
                rows.append(measure(bench, subject, way))
                sys.stdout.write(table(rows[-1:]).splitlines()[-1] + "\n")
    lines = ",\n ".join(json.dumps(asdict(row), ensure_ascii=False) for row in rows)
    MEASURED.write_text(f"[{lines}]\n")
    PAGE.write_text(page_with(PAGE.read_text(), rows))


if __name__ == "__main__":
    main()
