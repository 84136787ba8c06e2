"""Pictures as SVG text: dots with intervals, lines, and a curve. No script, no style sheet."""

import math
from collections.abc import Sequence
from html import escape

from bursar.results.show.html import cell

WIDTH, LEFT, RIGHT, ROW = 560, 150, 24, 22
INK, LINE, QUIET = "#1d4ed8", "#9ca3af", "#6b7280"
POINTS_MAX = 40
Point = tuple[str, float, float | None, float | None]  # label, value, low, high


def frame(width: float, height: float, label: str, *parts: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(label)}" '
        f'font-family="system-ui,sans-serif" font-size="12">{"".join(parts)}</svg>'
    )


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers that cover an interval."""
    if not math.isfinite(low) or not math.isfinite(high) or low == high:
        return [low]
    raw = (high - low) / count
    step = 10.0 ** math.floor(math.log10(raw))
    step *= next(factor for factor in (1, 2, 5, 10) if factor * step >= raw)
    first = math.ceil(low / step)
    return [number * step for number in range(first, math.floor(high / step) + 1)]


def dots(points: Sequence[Point], label: str) -> str:
    """One line for each point: its label, a dot, and a bar for the interval."""
    shown = points[:POINTS_MAX]
    ends = [end for _, value, low, high in shown for end in (value, low, high) if end is not None]
    low, high = min(ends), max(ends)
    margin = (high - low) * 0.04 or abs(high) * 0.1 or 1.0
    low, high = low - margin, high + margin
    height = ROW * len(shown) + 30

    def x(value: float) -> float:
        return LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    parts = [_vertical(x(tick), height - 24, tick) for tick in ticks(low, high)]
    for row, (name, value, least, most) in enumerate(shown):
        y = ROW * row + ROW / 2
        parts.append(
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="currentColor">'
            f"{escape(name[:22])}</text>"
        )
        if least is not None and most is not None:
            parts.append(
                f'<line x1="{x(least):.1f}" x2="{x(most):.1f}" y1="{y:.1f}" y2="{y:.1f}" '
                f'stroke="{INK}" stroke-width="2"/>'
            )
        parts.append(f'<circle cx="{x(value):.1f}" cy="{y:.1f}" r="4" fill="{INK}"/>')
    return frame(WIDTH, height, label, *parts)


def _vertical(x: float, bottom: float, tick: float) -> str:
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{bottom:.1f}" stroke="#e5e7eb"/>'
        f'<text x="{x:.1f}" y="{bottom + 16:.1f}" text-anchor="middle" fill="{QUIET}">'
        f"{escape(cell(tick))}</text>"
    )


def lines(
    series: Sequence[tuple[str, Sequence[tuple[float, float]], bool]],
    label: str,
    *,
    x_name: str,
    y_name: str,
    step: bool = False,
    x_text: Sequence[tuple[float, str]] | None = None,
) -> str:
    """Lines in one picture. A series has a name, points, and whether it is dashed."""
    width, height, left, bottom = 560.0, 240.0, 60.0, 200.0
    xs = [x for _, points, _ in series for x, _ in points]
    ys = [y for _, points, _ in series for _, y in points]
    x_low, x_high = min(xs), max(xs)
    y_low, y_high = min(0.0, *ys), max(ys) or 1.0
    wide, tall = (x_high - x_low) or 1.0, (y_high - y_low) or 1.0

    def at(x: float, y: float) -> tuple[float, float]:
        return left + (x - x_low) / wide * (width - left - 20), 10 + (y_high - y) / tall * (
            bottom - 10
        )

    parts = []
    for tick in ticks(y_low, y_high):
        _, y = at(x_low, tick)
        parts.append(
            f'<line x1="{left}" x2="{width - 20}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e7eb"/>'
            f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end" fill="{QUIET}">'
            f"{escape(cell(tick))}</text>"
        )
    for tick, text in x_text or [(tick, cell(tick)) for tick in ticks(x_low, x_high)]:
        x, _ = at(tick, 0)
        parts.append(
            f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle" fill="{QUIET}">'
            f"{escape(text)}</text>"
        )
    for number, (name, points, dashed) in enumerate(series):
        parts.append(_path([at(x, y) for x, y in points], dashed=dashed, step=step and not dashed))
        parts.append(
            f'<text x="{width - 24}" y="{24 + 16 * number}" text-anchor="end" fill="{QUIET}">'
            f"{'- - ' if dashed else '— '}{escape(name)}</text>"
        )
    parts.append(
        f'<text x="{(left + width) / 2}" y="{height - 6}" text-anchor="middle" fill="{QUIET}">'
        f'{escape(x_name)}</text><text x="8" y="14" fill="{QUIET}">{escape(y_name)}</text>'
    )
    return frame(width, height, label, *parts)


def _path(points: Sequence[tuple[float, float]], *, dashed: bool, step: bool) -> str:
    words = []
    for number, (x, y) in enumerate(points):
        if number and step:
            words.append(f"H{x:.1f}")
        words.append(f"{'L' if number else 'M'}{x:.1f} {y:.1f}")
    look = 'stroke-dasharray="5 4"' if dashed else 'stroke-width="2"'
    colour = LINE if dashed else INK
    return f'<path d="{"".join(words)}" fill="none" stroke="{colour}" {look}/>'
