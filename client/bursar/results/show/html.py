"""Small pieces of HTML with inline styles: they survive export, printing and strict notebooks."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

ROWS_MAX = 20
BOX = "font-family:system-ui,sans-serif;font-size:14px;line-height:1.4;max-width:56em;margin:8px 0"
QUIET = "color:#6b7280;font-size:12px"
CELL = "padding:2px 10px;border-bottom:1px solid #d1d5db;vertical-align:top"


def box(*parts: str) -> str:
    return f'<div style="{BOX}">{"".join(parts)}</div>'


def title(text: str, value: str = "") -> str:
    number = (
        f' <span style="font-size:20px;font-weight:600">{escape(value)}</span>' if value else ""
    )
    return f"<div><b>{escape(text)}</b>{number}</div>"


def quiet(text: str) -> str:
    return f'<div style="{QUIET}">{escape(text)}</div>'


def warning(text: str) -> str:
    style = "color:#92400e;background:#fef3c7;padding:2px 8px;border-radius:4px"
    return f'<div style="{style}"><b>{escape(text)}</b></div>'


def bar(share: float) -> str:
    """A bar of a budget; red when little is left. The number stands beside it."""
    percent = min(100.0, max(0.0, 100 * share))
    colour = "#b91c1c" if share > 0.9 else "#b45309" if share > 0.7 else "#1d4ed8"
    inner = f'<rect width="{2 * percent:.1f}" height="10" rx="3" fill="{colour}"/>'
    return (
        '<svg width="206" height="12" role="img" aria-label="used" style="vertical-align:middle">'
        f'<rect width="200" height="10" rx="3" fill="#e5e7eb"/>{inner}</svg> {percent:.1f} % used'
    )


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """The first rows as a table: numbers to the right, texts to the left."""
    shown = rows[:ROWS_MAX]
    styles = [f"{CELL};text-align:{_side([row.get(name) for row in shown])}" for name in columns]
    head = "".join(_td("th", style, n) for n, style in zip(columns, styles, strict=True))
    lines = [
        "".join(
            _td("td", style, cell(row.get(n))) for n, style in zip(columns, styles, strict=True)
        )
        for row in shown
    ]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    more = len(rows) - ROWS_MAX
    rest = quiet(f"and {more:,} more rows: use .to_pandas()") if more > 0 else ""
    style = "border-collapse:collapse;margin:6px 0;font-size:13px"
    return f'<table style="{style}"><tr>{head}</tr>{body}</table>{rest}'


def _side(values: Sequence[Any]) -> str:
    texts = any(isinstance(value, (str, bool)) for value in values)
    return "left" if texts else "right"


def _td(tag: str, style: str, text: str) -> str:
    return f'<{tag} style="{style}">{escape(text)}</{tag}>'


def cell(value: Any) -> str:
    """A value as people read it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"{value:,}" if isinstance(value, int) else short_cell(value)
    return str(value)


def short_cell(value: float) -> str:
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.4g}"
