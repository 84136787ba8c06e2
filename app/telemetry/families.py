"""The metrics of this service: names, meanings, and labels. docs/metrics.md lists the same."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from app.ledger.account import EVERYBODY, Account
from app.ports.telemetry import LedgerFigures
from app.telemetry.counters import CountName, Workers
from app.telemetry.observer import BATCH_SIZES


class Kept(NamedTuple):
    """The figures of an account, computed once for each of its versions."""

    account: Account
    values: tuple[float, ...]


# Figures of a budget, in the order of `budget_values`.
BUDGETS = {
    "bursar_budget_limit_epsilon": "Limit of the budget, as epsilon.",
    "bursar_budget_remaining_epsilon": "Epsilon that is left, as the budget shows it.",
    "bursar_budget_used_ratio": "Used share of the budget by its stop rule, 0 to 1.",
    "bursar_budget_remaining_ratio": "Remaining share of the budget by its stop rule, 0 to 1.",
    "bursar_budget_frozen": "1 if the limit is below what is spent.",
}
CHANGES = "Changes of the budget: grants, charges, refunds and booked losses."
COUNTS = {
    "charges": "Charges that were committed for questions and streams.",
    "answers": "Answers that were stored and sent.",
    "repeats": "Stored results that were sent again, free of charge.",
    "forfeits": "Charges that were forfeited: charged, and never answered.",
    "voids": "Charges that were given back.",
    "asks": "Asks of streams that were answered or forfeited.",
}
STATE = {
    "queued": ("bursar_questions_queued", "Questions that wait for their slot.", 1),
    "running": ("bursar_questions_running", "Charged questions whose slot has begun.", 1),
    "plans_waiting": ("bursar_plans_waiting", "Questions that wait to be planned.", 1),
    "orders_waiting": ("bursar_writer_orders_waiting", "Orders that wait for the writer.", 1),
    "writer_lag_ms": (
        "bursar_writer_lag_seconds",
        "Age of the oldest order that is not committed, rounded up to 0.1 s.",
        1000,
    ),
    "watchers": ("bursar_feed_watchers", "Open streams of budgets as they change.", 1),
    "feed_lag_ms": (
        "bursar_feed_lag_seconds",
        "Time since the feed of budgets has read the ledger, rounded up to 0.1 s.",
        1000,
    ),
    "beat_at": (
        "bursar_worker_beat_timestamp_seconds",
        "When the worker last wrote its state; once a second.",
        1,
    ),
    "started_at": ("process_start_time_seconds", "When the worker started.", 1),
    "memory_bytes": (
        "process_resident_memory_bytes",
        "Resident memory of the worker, rounded up to 16 MiB.",
        1,
    ),
    "open_files": ("process_open_fds", "Open files and connections of the worker.", 1),
}


def budget_values(account: Account) -> tuple[float, ...]:
    """Limit, remaining epsilon, used and remaining share, and whether it is frozen."""
    limit, used = account.limit["epsilon"], account.used
    remaining = account.balances()["remaining"]["epsilon"]
    return (limit, remaining, used, 1.0 - used, float(account.frozen))


def budgets(accounts: list[tuple[str, Kept]]) -> Iterator[Metric]:
    labels = ["dataset", "holder"]
    info = GaugeMetricFamily(
        "bursar_budget_info",
        "1 for each budget, with its currency.",
        labels=[*labels, "currency"],
    )
    families = [GaugeMetricFamily(name, text, labels=labels) for name, text in BUDGETS.items()]
    changes = CounterMetricFamily("bursar_budget_changes", CHANGES, labels=labels)
    for dataset, (account, values) in accounts:
        names = [dataset, EVERYBODY if account.holder == EVERYBODY else account.shown]
        info.add_metric([*names, account.currency], 1)
        changes.add_metric(names, account.version)
        for family, value in zip(families, values, strict=True):
            family.add_metric(names, value)
    yield from (info, *families, changes)


def ledger(figures: LedgerFigures | None, workers: Workers) -> Iterator[Metric]:
    up = GaugeMetricFamily("bursar_ledger_up", "1 if the ledger could be read for this scrape.")
    up.add_metric([], float(figures is not None))
    yield up
    if figures is None:
        return
    # A worker whose own commits are missing stops before the ledger says so.
    stopped = figures.stopped or any(values["stopped"] for values in workers.state.values())
    yield _one("bursar_charging_stopped", "1 if the ledger refuses all charges.", stopped)
    yield CounterMetricFamily(
        "bursar_ledger_entries", "Entries in all books of the ledger.", value=figures.entries
    )
    yield _one(
        "bursar_ledger_newest_entry_timestamp_seconds",
        "When the newest entry was written.",
        figures.newest_at // 1_000_000,
    )
    yield _one("bursar_budgets", "Budgets in the ledger.", figures.budgets)
    left_out = max(0, figures.budgets - len(figures.accounts))
    yield _one("bursar_budgets_left_out", "Budgets that this page leaves out.", left_out)


def counts(numbers: Mapping[CountName, int]) -> Iterator[Metric]:
    for name, text in COUNTS.items():
        shown = "stream_asks" if name == "asks" else name
        yield CounterMetricFamily(f"bursar_{shown}", text, value=numbers[name, ""])
    refusals = CounterMetricFamily(
        "bursar_refusals", "Requests that were refused, by type of problem.", labels=["type"]
    )
    requests = CounterMetricFamily(
        "bursar_requests",
        "Requests by template of their route, method and class of status.",
        labels=["route", "method", "status"],
    )
    overruns = CounterMetricFamily(
        "bursar_overruns",
        "Questions whose work was not done at the end of their slot, by kind.",
        labels=["kind"],
    )
    slots = CounterMetricFamily(
        "bursar_slots", "Public slots that were handed out, by kind.", labels=["lane"]
    )
    seconds = CounterMetricFamily(
        "bursar_slot_seconds",
        "Length of these slots, each rounded up to the time grid.",
        labels=["lane"],
    )
    for (name, *labels), number in numbers.items():
        if name == "refusals":
            refusals.add_metric(labels, number)
        elif name == "overruns":
            overruns.add_metric(labels, number)
        elif name == "slots":
            slots.add_metric(labels, number)
        elif name == "slot_ms":
            seconds.add_metric(labels, number / 1000)
        elif name == "requests" and number:
            requests.add_metric(labels, number)
    yield from (refusals, requests, overruns, slots, seconds, batches(numbers))


def batches(numbers: Mapping[CountName, int]) -> Metric:
    family = HistogramMetricFamily(
        "bursar_writer_batch_orders", "Orders that the writer commits together."
    )
    total, buckets = 0, []
    for size in BATCH_SIZES:
        total += numbers["batches", str(size)]
        buckets.append((str(float(size)), float(total)))
    family.add_metric([], [*buckets, ("+Inf", float(total))], numbers["orders", ""])
    return family


def state(workers: Workers) -> Iterator[Metric]:
    yield _one("bursar_workers", "Living workers of this server.", len(workers.state))
    families = {
        name: GaugeMetricFamily(shown, text, labels=["worker"])
        for name, (shown, text, _) in STATE.items()
    }
    for number, values in workers.state.items():
        for name, family in families.items():
            family.add_metric([str(number)], values[name] / STATE[name][2])
    yield from families.values()


def build_info(version: str, python: str, store: str) -> Metric:
    family = GaugeMetricFamily(
        "bursar_build_info",
        "1, with the versions of the service and of Python, and the kind of its ledger.",
        labels=["version", "python", "store"],
    )
    family.add_metric([version, python, store], 1)
    return family


def _one(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=float(value))
