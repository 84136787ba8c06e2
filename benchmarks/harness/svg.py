"""A chart of lines on two logarithmic axes, as an SVG that looks the same everywhere."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 460, 330
LEFT, RIGHT, TOP, BOTTOM = 70, 14, 34, 44
COLOURS = ["#555555", "#1b6ca8", "#c1440e", "#7a9a01", "#7b3fa0", "#0f8a7e"]
DASHES = ["", "6 3", "2 3", "8 3 2 3", "1 4", "10 4"]


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    points: list[tuple[float, float]]  # both coordinates positive


@dataclass(frozen=True, slots=True)
class Chart:
    title: str
    across: str
    up: str
    lines: list[Line]


def drawn(charts: list[Chart]) -> str:
    """The charts side by side, with one legend, because they have the same lines."""
    names = [line.name for line in charts[0].lines]
    tall = HEIGHT + 20 + 18 * len(names)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH * len(charts)} {tall}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for index, chart in enumerate(charts):
        parts.append(f'<g transform="translate({WIDTH * index} 0)">')
        parts += _chart(chart)
        parts.append("</g>")
    for index, name in enumerate(names):
        y = HEIGHT + 16 + 18 * index
        parts.append(f'<path d="M{LEFT} {y}h40" {_stroke(index)}/>')
        parts.append(f'<text x="{LEFT + 50}" y="{y + 4}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _chart(chart: Chart) -> Iterator[str]:
    xs = [x for line in chart.lines for x, _ in line.points]
    ys = [y for line in chart.lines for _, y in line.points]
    low, high = _decade(min(ys), math.floor), _decade(max(ys), math.ceil)

    def x_of(x: float) -> float:
        share = math.log(x / min(xs)) / math.log(max(xs) / min(xs))
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def y_of(y: float) -> float:
        share = math.log(y / low) / math.log(high / low)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)

    yield f'<text x="{LEFT}" y="18" font-weight="bold">{escape(chart.title)}</text>'
    mark = low
    while mark <= high * 1.001:
        y = y_of(mark)
        yield f'<path d="M{LEFT} {y}H{WIDTH - RIGHT}" stroke="#dddddd"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{mark:,.10g}</text>'
        mark *= 10
    for x in sorted(set(xs)):
        at = x_of(x)
        yield f'<path d="M{at} {HEIGHT - BOTTOM}v5" stroke="black"/>'
        yield f'<text x="{at}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{x:g}</text>'
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(chart.across)}</text>'
    turned = f'transform="rotate(-90 14 {HEIGHT / 2})"'
    yield f'<text x="14" y="{HEIGHT / 2}" text-anchor="middle" {turned}>{escape(chart.up)}</text>'
    for index, line in enumerate(chart.lines):
        points = [(x_of(x), y_of(y)) for x, y in line.points]
        if points:
            path = "M" + "L".join(f"{x} {y}" for x, y in points)
            yield f'<path d="{path}" {_stroke(index)}/>'
        for x, y in points:
            yield f'<circle cx="{x}" cy="{y}" r="2.6" fill="{COLOURS[index]}"/>'


def _stroke(index: int) -> str:
    dash = f' stroke-dasharray="{DASHES[index]}"' if DASHES[index] else ""
    return f'fill="none" stroke="{COLOURS[index]}" stroke-width="1.8"{dash}'


def _decade(value: float, rounded: Callable[[float], int]) -> float:
    return float(10.0 ** rounded(math.log10(value)))
