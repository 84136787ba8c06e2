"""Pages of a large ledger: 1,000 budgets, and a book with a million entries.

The ledger is the one that `charges` has filled. Each page is asked for by a signed-in
administrator, over HTTP. The ceiling is a limit: half a second.
"""

import http.client
import statistics
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlencode

from sqlalchemy import insert, select

from app.accounting.rules.terms import GrantTerms
from app.data.card import Dataset, Source, Version
from app.ledger.precondition import MUST_BE_NEW
from app.store import tables
from app.store.administration import Administration
from app.store.budgets import SqlBudgets
from app.store.connect import Database
from benchmarks.charges import ANALYST_ID, CARD, HISTORIES, dataset_name
from benchmarks.harness.servers import Bursar, served
from benchmarks.harness.table import Row

BUDGETS = 1000
ROUNDS = 9
LIMIT_MS = 500.0
LARGEST = dataset_name(list(HISTORIES)[-1])


def measure(store: str, folder: Path, url: str | None) -> Iterator[Row]:
    ledger = url or f"sqlite:///{folder / 'charges.db'}"
    _grant(Database(ledger))
    home = folder / f"pages-{store}"
    home.mkdir()
    with served(home, ledger, BURSAR_SECRET_KEY="k" * 32) as (server, _):
        browser = Browser(server)
        of_largest = f"/datasets/{LARGEST}/budgets"
        for name, path in {
            f"{BUDGETS:,} budgets": "/",
            "an account with many entries": f"{of_largest}/*",
            "an account with one old entry": f"{of_largest}/analyst-2",
            "its sparkline": f"{of_largest}/analyst-2/sparkline",
            "the ledger": "/ledger",
            "questions": "/questions",
            "the dataset": f"/datasets/{LARGEST}",
        }.items():
            value = statistics.median(browser.milliseconds(path) for _ in range(ROUNDS))
            title = f"page, {store}, {name}"
            yield Row(title, value, "ms", LIMIT_MS, value / LIMIT_MS, 1.0, at_most=True)


def _grant(database: Database) -> None:
    """The analyst of the charges, and budgets for as many holders as are missing."""
    budgets = SqlBudgets(database, Administration(database))
    analyst = {"id": ANALYST_ID, "name": "analyst-1", "folded": "analyst-1", "role": "analyst"}
    with database.writing() as connection:
        connection.execute(
            insert(tables.analysts).values(**analyst, enabled=1, created_at=1, groups="[]")
        )
    with database.reading() as connection:
        rows = connection.execute(select(tables.datasets)).all()
        granted = len(connection.execute(select(tables.accounts.c.id)).all())
    version, source = Version("-", 1, "-", "-"), Source("duckdb", "-")
    for number in range(granted, BUDGETS):
        row = rows[number % len(rows)]
        dataset = Dataset(row.id, row.name, "", row.book_id, CARD, source, version, False, 0)
        holder = f"person-{number}"
        terms = GrantTerms(epsilon=Decimal(3), delta=Decimal(0))
        budgets.grant(
            "bench",
            dataset,
            holder,
            holder,
            currency="pure",
            wish=terms,
            precondition=MUST_BE_NEW,
            reason=None,
        )
    database.engine.dispose()


class Browser:
    """A signed-in administrator, over one connection."""

    def __init__(self, server: Bursar) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        form = urlencode({"key": server.admin_key, "next": "/"})
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Origin": f"http://127.0.0.1:{server.port}",
        }
        self._connection.request("POST", "/sign-in", form, headers)
        reply = self._connection.getresponse()
        reply.read()
        self._cookie = (reply.getheader("Set-Cookie") or "").partition(";")[0]
        assert reply.status == 303, reply.status

    def milliseconds(self, path: str) -> float:
        headers = {"Cookie": self._cookie, "Accept": "text/html"}
        started = time.perf_counter()
        self._connection.request("GET", path, headers=headers)
        reply = self._connection.getresponse()
        reply.read()
        assert reply.status == 200, (path, reply.status)
        return 1000 * (time.perf_counter() - started)
