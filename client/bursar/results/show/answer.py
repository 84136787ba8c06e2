"""An answer as text and as HTML."""

from typing import TYPE_CHECKING, Any

from bursar.results.show import html, svg
from bursar.results.tables import Row, columns_of

if TYPE_CHECKING:
    from bursar.results.answers import Answer

TEXT_ROWS_MAX = 20
TEXT_WIDTH_MAX = 60


def answer_text(answer: "Answer") -> str:
    """An answer for a terminal: the value, its interval, and the price."""
    lines = [_headline(answer)]
    if answer.status != "withheld" and not _is_single(answer):
        lines += text_table(answer.rows())
    lines.append(price_line(answer))
    return "\n".join(lines)


def _is_single(answer: "Answer") -> bool:
    return not isinstance(answer.value, (list, dict))


def _headline(answer: "Answer") -> str:
    if answer.status == "withheld":
        return f"{answer.question}: withheld; the data are not stable enough"
    made_up = "MADE-UP ROWS " if answer.made_up else ""
    if not _is_single(answer):
        return f"{made_up}{answer.question}"
    return f"{made_up}{answer.question}: {html.cell(answer.value)}{_interval(answer)}"


def _interval(answer: "Answer") -> str:
    if answer.interval is None:
        return ""
    low, high = html.cell(answer.interval.low), html.cell(answer.interval.high)
    return f"  [{low} to {high}, {100 * answer.interval.confidence:g} % of the noise]"


def price_line(answer: "Answer") -> str:
    if answer.made_up:
        return (
            f"rehearsed: nothing was charged; the real question would cost {answer.charged.price}"
        )
    cost = "reused, free" if answer.reused else f"charged {answer.charged}"
    left = "" if answer.remaining is None else f"; {answer.remaining} left"
    mechanism = answer.mechanism.get("kind", "")
    return f"{cost}{left}; {mechanism}"


def text_table(rows: list[Row]) -> list[str]:
    """Rows as aligned text: numbers to the right, texts to the left and cut off."""
    names = columns_of(rows)
    shown = [[_cut(html.cell(row.get(name))) for name in names] for row in rows[:TEXT_ROWS_MAX]]
    widths = [max(len(text) for text in column) for column in zip(names, *shown, strict=True)]
    texts = [any(isinstance(row.get(name), (str, bool)) for row in rows) for name in names]

    def aligned(line: list[str]) -> str:
        cells = zip(line, widths, texts, strict=True)
        return "  ".join(c.ljust(w) if text else c.rjust(w) for c, w, text in cells).rstrip()

    lines = [aligned(line) for line in [names, *shown]]
    more = len(rows) - TEXT_ROWS_MAX
    return [*lines, f"and {more:,} more rows"] if more > 0 else lines


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_WIDTH_MAX else f"{text[: TEXT_WIDTH_MAX - 1]}…"


def answer_html(answer: "Answer") -> str:
    """An answer for a notebook: value, picture, table and price."""
    parts = []
    if answer.made_up:
        parts.append(html.warning("Rehearsal on made-up rows: not an answer about the data"))
    if answer.status == "withheld":
        parts += [html.title(answer.question, "withheld")]
    elif _is_single(answer):
        parts.append(html.title(answer.question, html.cell(answer.value)))
        parts += [html.quiet(_interval(answer).strip(" []"))] if answer.interval else []
    else:
        rows = answer.rows()
        parts += [html.title(answer.question), _picture(answer.question, rows)]
        parts.append(html.table(rows, columns_of(rows)))
    return html.box(*parts, html.quiet(price_line(answer)))


def _picture(question: str, rows: list[Row]) -> str:
    points = [point for row in rows if (point := _point(row)) is not None]
    return svg.dots(points, question) if points else ""


def _point(row: Row) -> svg.Point | None:
    value = row.get("value")
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    names = [name for name in row if name not in ("value", "low", "high", "adjusted", "made_up")]
    label = ", ".join(_label(row, name) for name in names if _is_label(name))
    return label, float(value), _number(row.get("low")), _number(row.get("high"))


def _is_label(name: str) -> bool:
    return not name.startswith(("share", "standard_error", "reported")) and not name.endswith("_to")


def _label(row: Row, name: str) -> str:
    value = row[name]
    if name.endswith("_from"):
        return f"{html.cell(value)} to {html.cell(row.get(name[:-5] + '_to'))}"
    return f"{name} {str(value).lower()}" if isinstance(value, bool) else html.cell(value)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
