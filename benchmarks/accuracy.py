"""`make plots`: the error of a median, by mechanism and epsilon, on the demo data.

For every mechanism the plot shows the median of RUNS errors, against the exact value of the same
rank. Smooth sensitivity and propose-test-release are queried as an analyst would, and clamped to
the column's bounds. Two more lines are for comparison. One is the choice among public candidates,
which the planner uses by default. The other is Laplace noise for the global sensitivity: the width
of the bounds times the rows of a person. It is so large that the service does not offer it.
Propose-test-release may withhold an answer: it has no point where fewer than half of the runs were
answered.
"""

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import as_file, files
from pathlib import Path
from statistics import median
from typing import Any

from app.actions.asking.engine_data import EngineData
from app.demo import census
from app.demo.cards import CENSUS, RAND_HIE
from app.mechanisms.sampling.system import SystemRandom
from app.planning.plan import make_plan
from app.planning.request import Question
from app.queries.shapes.ranks.rank import ShareRank
from app.queries.shapes.ranks.window import order_windows
from benchmarks.harness.prepared import Bench, card_of, prepared
from benchmarks.harness.servers import TOP
from benchmarks.harness.svg import Chart, Line, drawn

RUNS = 41
EPSILONS = ["0.1", "0.2", "0.5", "1", "2", "5"]
DELTA = "1e-6"
CANDIDATES = 100_001
Way = tuple[str, dict[str, Any] | None, dict[str, str]]
WAYS: list[Way] = [
    (f"choice among {CANDIDATES:,} public candidates", None, {}),
    ("smooth sensitivity, Student t", {"kind": "smooth_sensitivity", "noise": "student_t"}, {}),
    (
        f"smooth sensitivity, Laplace, delta {DELTA}",
        {"kind": "smooth_sensitivity", "noise": "laplace"},
        {"delta": DELTA},
    ),
    (
        f"propose-test-release, bound chosen privately, delta {DELTA}",
        {"kind": "propose_test_release"},
        {"delta": DELTA},
    ),
]
GLOBAL = "Laplace for the global sensitivity"


@dataclass(frozen=True, slots=True)
class Subject:
    title: str
    registered: dict[str, Any]
    write: Callable[[Path], Any]
    column: str


def _copy_rand_hie(path: Path) -> None:
    with as_file(files("app.demo") / "rand_hie.parquet") as shipped:
        shutil.copyfile(shipped, path)


SUBJECTS = [
    Subject("Median income, census: 30,000 persons", CENSUS, census.write, "income"),
    Subject(
        "Median family income, RAND HIE: 5,912 persons",
        RAND_HIE,
        _copy_rand_hie,
        "family_income",
    ),
]


def main() -> None:
    charts = []
    for subject in SUBJECTS:
        with (
            tempfile.TemporaryDirectory() as folder,
            prepared(Path(folder), card_of(subject.registered), subject.write) as bench,
        ):
            lines = list(_lines(bench, subject.column))
        charts.append(Chart(subject.title, "epsilon", "median error", lines))
        for line in lines:
            print(f"{line.name}: " + ", ".join(f"{x:g}: {y:.4g}" for x, y in line.points))
    (TOP / "docs" / "accuracy.svg").write_text(drawn(charts))


def _lines(bench: Bench, name: str) -> list[Line]:
    column = next(each for each in bench.dataset.card.columns if each.name == name)
    low, high = column.steps  # type: ignore[union-attr]  # a column of numbers
    step = 2.0**-column.grid_exponent  # type: ignore[union-attr]

    def ranks(n: int) -> tuple[tuple[int, int], ...]:
        at = ShareRank(Fraction(1, 2))(n)
        return ((at, at),)

    with EngineData(bench.engine, bench.dataset, "bench") as data:
        (window,) = order_windows(data.steps, None, name, (low, high), ranks)
    exact = window.values[0] * step
    rows = bench.dataset.card.person.rows_max
    lines = [
        Line(way[0], [p for e in EPSILONS if (p := _point(bench, name, exact, e, way))])
        for way in WAYS
    ]
    noise, wide = SystemRandom(), rows * (high - low)
    points = []
    for epsilon in EPSILONS:
        draws = noise.discrete_laplace(wide / float(epsilon), RUNS)
        answers = [min(max(window.values[0] + draw, low), high) for draw in draws]
        errors = [abs(answer * step - exact) for answer in answers]
        points.append((float(epsilon), max(step, median(errors))))
    return [*lines, Line(GLOBAL, points)]


def _point(
    bench: Bench, name: str, exact: float, epsilon: str, way: Way
) -> tuple[float, float] | None:
    _, mechanism, more = way
    query: dict[str, Any] = {"kind": "median", "column": name}
    if mechanism is None:
        column = next(each for each in bench.dataset.card.columns if each.name == name)
        bounds = {"low": column.low, "high": column.high}  # type: ignore[union-attr]
        query["candidates"] = {**bounds, "count": CANDIDATES}
    body = {"dataset": "x", "query": query, "privacy": {"epsilon": epsilon, **more}}
    question = Question.model_validate({**body, "mechanism": mechanism})
    plan = make_plan(question, bench.dataset.card)
    with EngineData(bench.engine, bench.dataset, "bench") as data:
        read = plan.release.read(data)
    answers = [plan.answer(read, SystemRandom())["value"] for _ in range(RUNS)]
    errors = [abs(value - exact) for value in answers if value is not None]
    if 2 * len(errors) < RUNS:
        return None
    return float(epsilon), max(1e-3, median(errors))


if __name__ == "__main__":
    main()
