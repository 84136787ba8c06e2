"""A scrape of 1,000 budgets in a ledger of a million entries.

The ceiling is the first scrape, which computes the figures of all accounts. Half of the accounts
count in `renyi`, whose figures are the most work.
"""

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import update

from app.store import tables
from app.store.administration import install
from app.store.connect import Database
from app.store.history.ledger_figures import SqlLedgerFigures
from app.store.migrate import migrate
from app.telemetry.counters import Counters, CountLayout, Workers
from app.telemetry.metrics import Build, ScrapedText
from app.telemetry.observer import count_names
from app.telemetry.worker_state import STATE
from benchmarks.charges import HOLDERS, book_with_entries
from benchmarks.harness.table import Row

DATASETS = 334  # each with three accounts
ENTRIES = 1_000_000
CHANGED = 20  # accounts that change between two scrapes
ROUNDS = 30
GOAL_MS = 250.0


def measure(folder: Path) -> Iterator[Row]:
    database = Database(f"sqlite:///{folder / 'scraping.db'}")
    migrate(database)
    install(database)
    for number in range(DATASETS):
        currency = "renyi" if number % 2 else "pure"
        entries = ENTRIES if number == 0 else 0
        book_with_entries(database, f"data-{number}", currency, entries)
    layout = CountLayout(STATE, count_names([("/v1/queries", "POST")], ["no-grant"], ["count"]))
    numbers = Counters(layout).read()
    scrape = ScrapedText(
        Build("0", "3", "sqlite"),
        SqlLedgerFigures(database),
        lambda: Workers({1: numbers.state}, numbers.counts),
        lambda: None,
    )
    first = _milliseconds(scrape)
    later = []
    for _ in range(ROUNDS):
        _change(database)
        later.append(_milliseconds(scrape))
    database.engine.dispose()
    usual = statistics.median(later)
    name = f"a scrape, {len(HOLDERS) * DATASETS} budgets, 10^6 entries"
    yield Row(f"{name}, the first", first, "ms", GOAL_MS * 4, first / GOAL_MS / 4, 1.0, "", True)
    yield Row(f"{name}, later", usual, "ms", GOAL_MS, usual / GOAL_MS, 1.0, "", at_most=True)


def _change(database: Database) -> None:
    accounts = tables.accounts
    with database.writing() as connection:
        ids = [row.id for row in connection.execute(accounts.select().limit(CHANGED))]
        connection.execute(
            update(accounts)
            .where(accounts.c.id.in_(ids))
            .values(version=accounts.c.version + 1, epsilon_spent=accounts.c.epsilon_spent + 1)
        )


def _milliseconds(scrape: ScrapedText) -> float:
    begin = time.perf_counter()
    text = scrape.text()
    assert text.count(b"bursar_budget_used_ratio{") == 2 * DATASETS
    return 1000 * (time.perf_counter() - begin)
