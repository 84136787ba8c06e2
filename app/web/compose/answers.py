"""Answers as tables and pictures: one row for each value, with its group and its interval."""

from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup, escape

from app.web.numbers import short

Json = dict[str, Any]
POINTS_MAX = 40
WIDTH, LEFT, RIGHT, LINE = 640, 190, 60, 28


@dataclass
class AnswerTable:
    """Rows of an answer. `columns` are their names in order; numbers stand to the right."""

    columns: list[str] = field(default_factory=list)
    rows: list[Json] = field(default_factory=list)
    confidence: float | None = None  # of every interval

    @property
    def is_single(self) -> bool:
        return len(self.rows) == 1 and set(self.columns) <= {"value", "low", "high"}


def rows_of_answer(answer: Json) -> AnswerTable:
    """The value of an answer as a table."""
    value, interval = answer.get("value"), answer.get("interval")
    if isinstance(value, dict) and isinstance(value.get("coefficients"), list):
        rows = [_flat(one) for one in value["coefficients"]]
    elif isinstance(value, list):
        rows = [
            _flat(one) if isinstance(one, dict) else {"rank": rank, "value": one}
            for rank, one in enumerate(value, start=1)
        ]
    else:
        row = _flat(value) if isinstance(value, dict) else {"value": value}
        rows = [{**row, **_ends(interval)}]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return AnswerTable(columns, rows, _confidence([interval, value]))


def _confidence(member: Any) -> float | None:
    """The confidence of the first interval in an answer; all intervals have the same."""
    if isinstance(member, dict):
        if "confidence" in member:
            return float(member["confidence"])
        member = list(member.values())
    inside = map(_confidence, member) if isinstance(member, list) else iter(())
    return next((confidence for confidence in inside if confidence is not None), None)


def _flat(member: Json, prefix: str = "") -> Json:
    row: Json = {}
    for name, value in member.items():
        if name == "group" and isinstance(value, dict):
            row |= _flat(value)
        elif name == "interval":
            row |= {f"{prefix}{end}": number for end, number in _ends(value).items()}
        elif name == "values" and isinstance(value, list):
            for one in value:
                label = " ".join(str(one[part]) for part in ("kind", "column") if one.get(part))
                rest = {key: v for key, v in one.items() if key not in ("kind", "column")}
                row |= _flat(rest, f"{label} ")
        elif isinstance(value, dict):
            row |= _flat(value, f"{prefix}{name} ")
        else:
            row[prefix.strip() if prefix and name == "value" else f"{prefix}{name}"] = value
    return row


def _ends(interval: Json | None) -> Json:
    return {} if interval is None else {"low": interval["low"], "high": interval["high"]}


def dot_plot(table: AnswerTable, label: str) -> Markup:
    """One line for each row: its group, its value, and the interval of the noise around it."""
    points = [row for row in table.rows if isinstance(row.get("value"), int | float)][:POINTS_MAX]
    points = [row for row in points if not isinstance(row["value"], bool)]
    if not points:
        return Markup("")
    ends = [row[name] for row in points for name in ("value", "low", "high") if name in row]
    numbers = [float(end) for end in ends if end is not None]
    low, high = min(numbers), max(numbers)
    margin = 0.05 * (high - low) or abs(high) * 0.1 or 1.0
    scale = _Scale(low - margin, high + margin)
    height = LINE * len(points) + 26
    parts = [_tick(scale, value, height) for value in (low, (low + high) / 2, high)]
    parts += [_line(scale, row, index) for index, row in enumerate(points)]
    return Markup(
        '<svg class="dots" role="img" aria-label="{}" width="100%" viewBox="0 0 {} {}">{}</svg>'
    ).format(label, WIDTH, height, Markup("").join(parts))


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float

    def x(self, value: float) -> float:
        return LEFT + (value - self.low) / (self.high - self.low) * (WIDTH - LEFT - RIGHT)


def _tick(scale: _Scale, value: float, height: int) -> Markup:
    x = f"{scale.x(value):.1f}"
    return Markup(
        '<line class="axis" x1="{0}" x2="{0}" y1="0" y2="{1}"/>'
        '<text class="tick" x="{0}" y="{2}" text-anchor="middle">{3}</text>'
    ).format(x, height - 22, height - 6, short(value))


def _line(scale: _Scale, row: Json, index: int) -> Markup:
    y = LINE * index + LINE / 2
    text = _label(row)
    parts = [
        Markup('<text x="{}" y="{:.1f}" text-anchor="end">{}</text>').format(
            LEFT - 12, y + 4, escape(text if len(text) <= 26 else f"{text[:25]}…")
        )
    ]
    if row.get("low") is not None and row.get("high") is not None:
        parts.append(
            Markup('<line class="noise" x1="{:.1f}" x2="{:.1f}" y1="{y}" y2="{y}"/>').format(
                scale.x(row["low"]), scale.x(row["high"]), y=y
            )
        )
    parts.append(
        Markup('<circle class="value" cx="{:.1f}" cy="{}" r="4.5"/>').format(
            scale.x(row["value"]), y
        )
    )
    return Markup("").join(parts)


def _label(row: Json) -> str:
    """Groups and edges of a row, as one text."""
    hidden = {"value", "low", "high", "share", "standard_error", "adjusted", "reported"}
    if "from" in row and "to" in row:
        return f"{_plain(row['from'])} to {_plain(row['to'])}"
    return ", ".join(_plain(value) for name, value in row.items() if name not in hidden)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return short(value)
    return "missing" if value is None else str(value)
