"""Table with one row for each figure: value, ceiling measured beside it, their ratio, and goal."""

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    value: float
    unit: str
    ceiling: float
    ratio: float
    goal: float | None
    note: str = ""
    at_most: bool = False  # the goal is an upper limit

    @property
    def passed(self) -> bool | None:
        if self.goal is None:
            return None
        return self.ratio <= self.goal if self.at_most else self.ratio >= self.goal

    def line(self) -> str:
        sign = "<= " if self.at_most else ""
        goal = "" if self.goal is None else f"goal {sign}{self.goal:.2f} "
        verdict = {None: "", True: "met", False: "NOT MET"}[self.passed]
        return (
            f"{self.name:48} {self.value:9.0f} / {self.ceiling:7.0f} {self.unit}  "
            f"ratio {self.ratio:.2f}  {goal}{verdict} {self.note}"
        )


def write(rows: list[Row], path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    content = [
        {
            "name": row.name,
            "value": row.value,
            "unit": row.unit,
            "ceiling": row.ceiling,
            "ratio": row.ratio,
            "goal": row.goal,
            "pass": row.passed,
        }
        for row in rows
    ]
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
