"""Figures for a scrape: kept numbers, and only accounts that have changed are read again."""

from collections.abc import Iterator

import pytest
from sqlalchemy import event

from app.store.connect import Database
from app.store.history.ledger_figures import SqlLedgerFigures
from tests.end_to_end.telemetry.exposition import value
from tests.server import World, ask, count, made, new_key


@pytest.fixture
def database(world: World) -> Iterator[Database]:
    _ = world.server
    opened = Database(world.ledger.database or f"sqlite:///{world.ledger.sqlite_path}")
    yield opened
    opened.engine.dispose()


def test_figures_are_those_of_the_budgets(world: World, database: Database) -> None:
    made(ask(world.client("ada"), count("people", 0.25), new_key()))
    figures = SqlLedgerFigures(database).read(100)
    shown = {budget["holder"]: budget["used"] for budget in world.pages("/v1/budgets")}
    assert {account.shown: account.used for _, account in figures.accounts} == shown
    assert (figures.budgets, figures.stopped) == (3, False)
    lines = world.admin.get("/v1/ledger/export").text.splitlines()
    assert figures.entries == sum('"type":"entry"' in line for line in lines)


def test_accounts_of_everybody_come_first_and_the_rest_is_counted(
    world: World, database: Database
) -> None:
    figures = SqlLedgerFigures(database).read(2)
    assert figures.budgets == 3
    assert len(figures.accounts) == 2
    assert figures.accounts[0][1].holder == "*"


def test_an_account_that_has_not_changed_is_not_read_again(
    world: World, database: Database
) -> None:
    statements: list[str] = []
    event.listen(
        database.engine,
        "before_cursor_execute",
        lambda *call: statements.append(call[2]),
    )
    reader = SqlLedgerFigures(database)
    first = {account.holder: account for _, account in reader.read(100).accounts}
    statements.clear()
    second = {account.holder: account for _, account in reader.read(100).accounts}
    assert all(second[holder] is account for holder, account in first.items())
    assert not any("curve_spent" in statement for statement in statements)
    assert not any("entries" in statement for statement in statements)
    made(ask(world.client("ada"), count("people", 0.25), new_key()))
    third = {account.holder: account for _, account in reader.read(100).accounts}
    assert third["bob"] is first["bob"]
    assert third["ada"].version == first["ada"].version + 1


def test_a_ledger_that_was_stopped_is_shown_as_stopped(world: World, database: Database) -> None:
    world.ledger.change("UPDATE installation SET standing = standing + 1")
    assert SqlLedgerFigures(database).read(100).stopped
    assert value(world.admin.get("/metrics").text, "bursar_charging_stopped") == 1
