"""Build docs/monitoring/board.json, a board for Grafana: `python -m docs.tools.build_board`.

tests/docs/test_monitoring.py compares the file with this script, and the expressions with the
metrics of a real server.
"""

from pathlib import Path
from typing import NamedTuple

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendDisplayMode, LegendPlacement
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DataSourceRef,
    Threshold,
    ThresholdsMode,
)

BOARD = Path(__file__).resolve().parents[1] / "monitoring" / "board.json"
SOURCE = DataSourceRef(type_val="prometheus", uid="${source}")
WIDTH = 24  # columns of a board
BUDGETS = "min by (dataset, holder) (bursar_budget_remaining_ratio)"


class Line(NamedTuple):
    """One expression of a panel, and the name of its line."""

    expression: str
    legend: str = ""


class Chart(NamedTuple):
    title: str
    lines: tuple[Line, ...]
    unit: str = "short"
    span: int = 12
    share: bool = False  # an axis from 0 to 1


class Figure(NamedTuple):
    """One number; it turns red from `bad` on, or below it if `low`."""

    title: str
    expression: str
    unit: str = "short"
    bad: float = 1.0
    low: bool = False


def per_second(name: str, by: str = "") -> str:
    return f"sum{f' by ({by})' if by else ''} (rate({name}[$__rate_interval]))"


FIGURES = (
    Figure("Servers that reply", 'sum(up{job="bursar"})', low=True),
    Figure("Charging stopped", "max(bursar_charging_stopped)"),
    Figure("Least budget left", "min(bursar_budget_remaining_ratio)", "percentunit", 0.1, True),
    Figure("Forfeits, last day", "sum(increase(bursar_forfeits_total[1d]))"),
    Figure("Overruns, last day", "sum(increase(bursar_overruns_total[1d]))"),
    Figure("Writer lag", "max(bursar_writer_lag_seconds)", "s", 2),
)
ROWS: dict[str, tuple[Chart, ...]] = {
    "Budgets": (
        Chart("Share left", (Line(BUDGETS, "{{dataset}} {{holder}}"),), "percentunit", share=True),
        Chart(
            "Share left in three days, if it goes on as in the last six hours",
            (
                Line(
                    "clamp_min(min by (dataset, holder) "
                    "(predict_linear(bursar_budget_remaining_ratio[6h], 3 * 86400)), 0)",
                    "{{dataset}} {{holder}}",
                ),
            ),
            "percentunit",
            share=True,
        ),
        Chart(
            "Epsilon left",
            (
                Line(
                    "min by (dataset, holder) (bursar_budget_remaining_epsilon)",
                    "{{dataset}} {{holder}}",
                ),
            ),
        ),
        Chart(
            "Changes of budgets in an hour",
            (
                Line(
                    "max by (dataset, holder) (increase(bursar_budget_changes_total[1h]))",
                    "{{dataset}} {{holder}}",
                ),
            ),
        ),
    ),
    "Questions": (
        Chart(
            "Charges, answers and free repetitions",
            (
                Line(per_second("bursar_charges_total"), "charged"),
                Line(per_second("bursar_answers_total"), "answered"),
                Line(per_second("bursar_repeats_total"), "repeated, free"),
                Line(per_second("bursar_stream_asks_total"), "asks of streams"),
            ),
            "ops",
        ),
        Chart("Refusals", (Line(per_second("bursar_refusals_total", "type"), "{{type}}"),), "ops"),
        Chart(
            "Forfeits, voids and overruns in an hour",
            (
                Line("sum(increase(bursar_forfeits_total[1h]))", "forfeited"),
                Line("sum(increase(bursar_voids_total[1h]))", "given back"),
                Line("sum by (kind) (increase(bursar_overruns_total[1h]))", "overran: {{kind}}"),
            ),
        ),
        Chart(
            "Waiting and running",
            (
                Line("sum(bursar_plans_waiting)", "wait to be planned"),
                Line("sum(bursar_questions_queued)", "wait for a slot"),
                Line("sum(bursar_questions_running)", "running"),
            ),
        ),
        Chart(
            "Slots in use, by kind",
            (Line(per_second("bursar_slot_seconds_total", "lane"), "{{lane}}"),),
        ),
        Chart(
            "Requests",
            (Line(per_second("bursar_requests_total", "status"), "{{status}}"),),
            "reqps",
        ),
    ),
    "Server": (
        Chart(
            "Orders in a commit",
            (
                Line(
                    f"{per_second('bursar_writer_batch_orders_sum')} / "
                    f"{per_second('bursar_writer_batch_orders_count')}",
                    "mean",
                ),
                Line(
                    "histogram_quantile(0.95, "
                    f"{per_second('bursar_writer_batch_orders_bucket', 'le')})",
                    "95 %",
                ),
            ),
        ),
        Chart(
            "Lag of the writer and of the feed",
            (
                Line("max by (instance) (bursar_writer_lag_seconds)", "writer {{instance}}"),
                Line("max by (instance) (bursar_feed_lag_seconds)", "feed {{instance}}"),
            ),
            "s",
        ),
        Chart(
            "Memory",
            (
                Line(
                    'sum by (instance, worker) (process_resident_memory_bytes{job="bursar"})',
                    "{{instance}} worker {{worker}}",
                ),
            ),
            "bytes",
        ),
        Chart(
            "Entries in the ledger",
            (Line("max(bursar_ledger_entries_total)", "entries"),),
        ),
        Chart(
            "Workers and watchers",
            (
                Line("sum(bursar_workers)", "workers"),
                Line("sum(bursar_feed_watchers)", "watchers of budgets"),
                Line("sum(process_open_fds{job='bursar'})", "open files"),
            ),
        ),
    ),
}


def query(line: Line, letter: str) -> prometheus.Dataquery:
    made = prometheus.Dataquery().datasource(SOURCE).expr(line.expression).ref_id(letter).range()
    return made.legend_format(line.legend or "__auto")


def steps(figure: Figure) -> dashboard.ThresholdsConfig:
    first, second = ("red", "green") if figure.low else ("green", "red")
    changes = [Threshold(value=None, color=first), Threshold(value=figure.bad, color=second)]
    return dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(changes)


def figure_panel(figure: Figure) -> stat.Panel:
    panel = stat.Panel().title(figure.title).datasource(SOURCE).unit(figure.unit)
    panel = panel.thresholds(steps(figure)).span(WIDTH // len(FIGURES)).height(4)
    latest = common.ReduceDataOptions().calcs(["lastNotNull"])
    return panel.reduce_options(latest).with_target(query(Line(figure.expression), "A"))


def chart_panel(chart: Chart) -> timeseries.Panel:
    legend = common.VizLegendOptions().show_legend(True).placement(LegendPlacement.BOTTOM)
    panel = timeseries.Panel().title(chart.title).datasource(SOURCE).unit(chart.unit)
    panel = panel.legend(legend.display_mode(LegendDisplayMode.LIST)).fill_opacity(8).min(0)
    if chart.share:
        panel = panel.max(1)
    for number, line in enumerate(chart.lines):
        panel = panel.with_target(query(line, chr(ord("A") + number)))
    return panel.span(chart.span).height(8)


def board() -> str:
    made = dashboard.Dashboard("Bursar").uid("bursar").tags(["bursar"]).readonly()
    made = (
        made.tooltip(DashboardCursorSync.CROSSHAIR)
        .refresh("30s")
        .time("now-24h", "now")
        .timezone("browser")
    )
    made = made.with_variable(
        dashboard.DatasourceVariable("source").label("Prometheus").type("prometheus")
    )
    for figure in FIGURES:
        made = made.with_panel(figure_panel(figure))
    for title, charts in ROWS.items():
        made = made.with_row(dashboard.Row(title))
        for chart in charts:
            made = made.with_panel(chart_panel(chart))
    return JSONEncoder(sort_keys=True, indent=1).encode(made.build()) + "\n"


def expressions() -> list[str]:
    """Every expression of the board."""
    charts = (line.expression for row in ROWS.values() for chart in row for line in chart.lines)
    return [*(figure.expression for figure in FIGURES), *charts]


if __name__ == "__main__":
    BOARD.write_text(board())
