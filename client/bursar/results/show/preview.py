"""Previews as text and as HTML."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bursar.ask.amounts import Loss, short
from bursar.results.show import html, svg
from bursar.results.show.answer import text_table
from bursar.results.tables import Row, columns_of

if TYPE_CHECKING:
    from bursar.results.previews import PlanPreview, Preview


def preview_text(preview: "Preview") -> str:
    lines = [f"{preview.question}: {_price(preview)}", preview.expected_error.text]
    others = _alternatives(preview)
    if len(others) > 1:
        lines += ["", *text_table(others)]
    return "\n".join(lines)


def _price(preview: "Preview") -> str:
    if preview.reused:
        return "free, because it was answered before"
    if preview.fits:
        return f"costs {preview.price}"
    refusal = preview.refusal or {}
    reason = refusal.get("detail") or "an account would refuse it"
    return f"costs {preview.price}, but {reason[0].lower()}{reason[1:]}"


def _alternatives(preview: "Preview") -> list[Row]:
    return [
        {
            "mechanism": _mechanism(other),
            "price": str(Loss.read(other.get("price")) or ""),
            "error": _error(other.get("expected_error") or {}),
            "payable": other.get("payable"),
        }
        for other in preview.alternatives
    ]


def _mechanism(other: Mapping[str, Any]) -> str:
    """The kind of a mechanism, with the kind of its noise if there is a choice."""
    noise = (other.get("mechanism") or {}).get("noise")
    kind = str(other["kind"])
    return f"{kind} ({noise})" if isinstance(noise, str) else kind


def _error(error: dict[str, Any]) -> str:
    half_width = error.get("half_width")
    return "" if half_width is None else f"±{short(half_width)} {error.get('unit') or ''}".strip()


def preview_html(preview: "Preview") -> str:
    parts = [html.title(preview.question, _price(preview)), html.quiet(preview.expected_error.text)]
    others = _alternatives(preview)
    if len(others) > 1:
        parts.append(html.table(others, columns_of(others)))
    points = [
        (float(point["epsilon"]), float(point["expected_error"]["half_width"]))
        for point in preview.curve
        if point["expected_error"].get("half_width") is not None
    ]
    if len(points) > 1:
        unit = preview.expected_error.unit or "error"
        series = [("error at each price", points, False)]
        label = f"error of {preview.question} against epsilon"
        parts.append(svg.lines(series, label, x_name="epsilon", y_name=f"± {unit}"))
    return html.box(*parts, html.quiet("A preview is free."))


def plan_text(plan: "PlanPreview") -> str:
    return "\n".join([_summary(plan), *text_table(plan.rows())])


def _summary(plan: "PlanPreview") -> str:
    number = len(plan.items)
    if plan.stops_at is None:
        return f"All {number} questions fit the budget."
    return f"The budget pays for {plan.stops_at} of {number} questions."


def plan_html(plan: "PlanPreview") -> str:
    rows = plan.rows()
    return html.box(html.title(_summary(plan)), html.table(rows, columns_of(rows)))
