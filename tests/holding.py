"""Planted work that ends only when its test releases it, so that no test races with it.

The server can end both kinds like any other work: a run at its next checkpoint, a statement by an
interruption of its cursor.
"""

import os
from pathlib import Path

_RUN = """
import pathlib, time
from app.mechanisms.learning.gradient_descent import GradientRelease
noisy_sum = GradientRelease.noisy_sum
def may_go_on(step):
    try:
        return step < int(pathlib.Path({path!r}).read_text())
    except FileNotFoundError:
        return True
def held(self, weights, rows, noise, reached):
    while not may_go_on(reached.args[0]):
        reached()
        time.sleep(0.01)
    return noisy_sum(self, weights, rows, noise, reached)
GradientRelease.noisy_sum = held
"""

_STATEMENT = """
import pathlib
import duckdb
from app.engines.files.duckdb import DuckDBAsking
place, rows = pathlib.Path({path!r}), DuckDBAsking.rows
def endless(self, statement):
    if place.exists():
        place.with_suffix(".begun").touch()
        try:
            self.cursor.execute("SELECT count(*) FROM range(1e15::BIGINT) WHERE hash(range) = 1")
        except duckdb.InterruptException:
            place.with_suffix(".interrupted").touch()
            raise
    return rows(self, statement)
DuckDBAsking.rows = endless
"""


class HeldRuns:
    """Runs of many steps that stop at a given step until they are released."""

    def __init__(self, folder: Path, steps: int) -> None:
        self._path = folder / "run-steps"
        self.sabotage = _RUN.format(path=str(self._path))
        folder.mkdir(parents=True, exist_ok=True)
        self.may_reach(steps)

    def may_reach(self, step: int) -> None:
        new = self._path.with_suffix(".new")
        new.write_text(str(step))
        os.replace(new, self._path)

    def let_go(self) -> None:
        self._path.unlink()


class EndlessStatements:
    """Statements of questions that never end until they are released; later ones end normally."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "statement"
        self._path.touch()
        self.sabotage = _STATEMENT.format(path=str(self._path))

    @property
    def begun(self) -> bool:
        return self._path.with_suffix(".begun").exists()

    @property
    def interrupted(self) -> bool:
        return self._path.with_suffix(".interrupted").exists()

    def let_go(self) -> None:
        self._path.unlink()
