"""Budgets, their history and trade-off curves as text and as HTML."""

import datetime
from typing import TYPE_CHECKING

from bursar.ask.amounts import short
from bursar.results.show import html, svg

if TYPE_CHECKING:
    from bursar.results.budgets import BudgetFigures, History, Tradeoff

BAR = 24


def budget_text(budget: "BudgetFigures") -> str:
    full = min(BAR, round(BAR * budget.used))
    bar = "#" * full + "." * (BAR - full)
    state = " FROZEN" if budget.frozen else ""
    return (
        f"budget of {_holder(budget)} on {budget.dataset}{state}\n"
        f"[{bar}] {100 * budget.used:.1f} % used; {budget.remaining} left of {budget.limit}\n"
        f"enough for {budget.questions_left:,} counts of ε 0.1; "
        f"at most ε {short(budget.largest_epsilon)} at once"
    )


def _holder(budget: "BudgetFigures") -> str:
    return "everybody together (*)" if budget.holder == "*" else budget.holder


def budget_html(budget: "BudgetFigures", *more: str) -> str:
    state = " (frozen)" if budget.frozen else ""
    left = f"{budget.remaining} left of {budget.limit}"
    enough = f"enough for {budget.questions_left:,} counts of ε 0.1"
    return html.box(
        html.title(f"Budget of {_holder(budget)} on {budget.dataset}{state}"),
        f"<div>{html.bar(budget.used)}</div>",
        html.quiet(f"{left}; {enough}; at most ε {short(budget.largest_epsilon)} at once"),
        *more,
    )


def history_html(history: "History") -> str:
    """Burn-down: what was left after each entry, and where the pace of the last days leads."""
    forecast = history.forecast()
    return budget_html(history.budget, _burn_down(history), html.quiet(forecast.text))


def _burn_down(history: "History") -> str:
    points = [(_seconds(item["at"]), 1 - float(item["used"])) for item in history.items]
    if len(points) < 2:
        return ""
    now = datetime.datetime.now(datetime.timezone.utc).timestamp()
    points.append((max(now, points[-1][0]), points[-1][1]))
    series = [("left", points, False)]
    date = history.forecast().date
    if date is not None:
        end = datetime.datetime.combine(date, datetime.time(), datetime.timezone.utc).timestamp()
        limit = points[0][0] + 3 * (points[-1][0] - points[0][0])
        series.append(("forecast", _until(points[-1], (end, 0.0), limit), True))
    last = series[-1][1][-1][0]
    marks = [(at, _day(at)) for at in (points[0][0], last)]
    label = f"share of the budget left, {history.budget.holder} on {history.budget.dataset}"
    return svg.lines(series, label, x_name="", y_name="left", step=True, x_text=marks)


def _until(
    first: tuple[float, float], last: tuple[float, float], limit: float
) -> list[tuple[float, float]]:
    """A straight line, cut off at a limit so that the picture stays readable."""
    if last[0] <= limit or last[0] <= first[0]:
        return [first, last]
    share = (limit - first[0]) / (last[0] - first[0])
    return [first, (limit, first[1] + share * (last[1] - first[1]))]


def _seconds(text: str) -> float:
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def _day(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime(
        "%Y-%m-%d %H:%M"
    )


def tradeoff_html(tradeoff: "Tradeoff") -> str:
    series = [
        ("spent so far", list(zip(tradeoff.alpha, tradeoff.beta, strict=True)), False),
        ("whole budget", list(zip(tradeoff.alpha, tradeoff.promised_beta, strict=True)), True),
    ]
    picture = svg.lines(
        series, "trade-off curve", x_name="persons wrongly accused", y_name="persons missed"
    )
    heading = f"The best attack so far: {tradeoff.budget.dataset}"
    return html.box(html.title(heading), picture, html.quiet(tradeoff.sentence()))
