"""The schema on both stores: no drift, upgrades and downgrades, all or nothing, constraints."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import inspect
from sqlalchemy.exc import DBAPIError, IntegrityError

from app.errors import StoreUnavailable
from app.store import tables
from app.store.administration import install
from app.store.connect import Database
from app.store.migrate import MIGRATIONS, check_current, migrate
from tests.store.ledgers import Ledger, execute, make_ledger

BROKEN = '''
"""A migration that fails half way."""

import sqlalchemy as sa
from alembic import op

revision = "9998"
down_revision = "{head}"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table("half", sa.Column("id", sa.Integer(), primary_key=True))
    op.execute("UPDATE accounts SET epsilon_spent = 0")
    op.execute("DROP TABLE requests")
    raise RuntimeError("half way")


def downgrade() -> None:
    pass
'''


def alembic(database: Database, deed: str, *words: str, folder: Path = MIGRATIONS) -> None:
    """Run one alembic command as the service does, inside the ledger's write transaction."""
    config = Config()
    config.set_main_option("script_location", str(folder))
    with database.writing() as connection:
        config.attributes["connection"] = connection
        getattr(command, deed)(config, *words)


def names(database: Database) -> set[str]:
    with database.engine.connect() as connection:
        return set(inspect(connection).get_table_names())


def test_the_migrations_make_exactly_the_tables_of_the_app(empty: Database) -> None:
    migrate(empty)
    assert names(empty) == {*tables.metadata.tables, "alembic_version"}
    alembic(empty, "check")


def test_upgrade_downgrade_and_upgrade_again_leave_the_same_schema(empty: Database) -> None:
    migrate(empty)
    alembic(empty, "downgrade", "base")
    assert names(empty) == {"alembic_version"}
    migrate(empty)
    alembic(empty, "check")
    migrate(empty)
    ledger = make_ledger(empty)
    ledger.charge(ledger.order())
    assert ledger.verified().sound
    ledger.close()


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    folder = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    head = ScriptDirectory(str(MIGRATIONS)).get_current_head()
    assert head is not None
    (folder / "versions" / "9998_broken.py").write_text(BROKEN.replace("{head}", head))
    return folder


def test_a_migration_that_fails_halfway_leaves_nothing(empty: Database, broken: Path) -> None:
    migrate(empty)
    ledger = make_ledger(empty)
    ledger.charge(ledger.order())
    before, tables_before = ledger.everything(), names(empty)
    with pytest.raises(RuntimeError, match="half way"):
        alembic(empty, "upgrade", "head", folder=broken)
    empty.engine.dispose()
    assert ledger.everything() == before
    assert names(empty) == tables_before
    check_current(empty)
    ledger.charge(ledger.order())
    ledger.close()


def test_a_first_migration_that_fails_leaves_an_empty_database(
    empty: Database, broken: Path
) -> None:
    with pytest.raises(RuntimeError, match="half way"):
        alembic(empty, "upgrade", "head", folder=broken)
    assert names(empty) == set()
    migrate(empty)
    check_current(empty)


def test_a_ledger_with_another_schema_is_refused(empty: Database) -> None:
    with pytest.raises(StoreUnavailable, match="empty"):
        check_current(empty)
    migrate(empty)
    check_current(empty)
    execute(empty, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreUnavailable, match="9999"):
        check_current(empty)


def test_a_ledger_is_installed_once(empty: Database) -> None:
    migrate(empty)
    install(empty)
    with empty.reading() as connection:
        first = connection.execute(tables.installation.select()).all()
    install(empty)
    with empty.reading() as connection:
        assert connection.execute(tables.installation.select()).all() == first


# Constraints of the schema


@pytest.fixture
def charged(ledger: Ledger) -> Ledger:
    ledger.charge(ledger.order())
    return ledger


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET text = text",
        "UPDATE entries SET hash = 'x' WHERE seq = 1",
        "DELETE FROM entries WHERE seq = 1",
        "DELETE FROM entries",
    ],
)
def test_entries_can_be_neither_changed_nor_removed(charged: Ledger, statement: str) -> None:
    before = charged.everything()
    with pytest.raises(DBAPIError, match="append-only"):
        execute(charged.database, statement)
    assert charged.everything() == before


def test_entries_cannot_be_truncated(charged: Ledger) -> None:
    if charged.database.is_sqlite:
        pytest.skip("SQLite has no TRUNCATE")
    with pytest.raises(DBAPIError, match="append-only"):
        execute(charged.database, "TRUNCATE entries")


IMPOSSIBLE = {
    "a spend below zero": "UPDATE accounts SET epsilon_spent = -1",
    "a spent delta below zero": "UPDATE accounts SET delta_spent = -1",
    "a loss below zero": "UPDATE charges SET epsilon = -1",
    "a state nobody knows": "UPDATE charges SET state = 'refunded'",
    "an answer without its state": "UPDATE charges SET answer = 'x'",
    "a state without its answer": "UPDATE charges SET state = 'answered'",
    "a role nobody knows": "UPDATE analysts SET role = 'root'",
    "a second installation": "INSERT INTO installation (id, secret, catalogue) VALUES (2, '', 1)",
    "an account without a book": "UPDATE accounts SET book_id = 'none'",
    "a book without its entries": "DELETE FROM books",
    "two charges with one key": "UPDATE charges SET request = 'the same'",
    "two people of one name": "UPDATE analysts SET folded = 'the same'",
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_the_schema_refuses(charged: Ledger, what: str) -> None:
    charged.charge(charged.order())
    before = charged.everything()
    with pytest.raises(IntegrityError):
        execute(charged.database, IMPOSSIBLE[what])
    assert charged.everything() == before


@pytest.mark.parametrize("amount", ["'much'", "1.5"])
def test_an_amount_is_a_whole_number(charged: Ledger, amount: str) -> None:
    if not charged.database.is_sqlite and amount == "1.5":
        pytest.skip("PostgreSQL rounds a number that is bound to an integer column")
    with pytest.raises(DBAPIError):
        execute(charged.database, f"UPDATE accounts SET epsilon_spent = {amount}")


def test_an_amount_of_64_bits_is_kept_exactly(ledger: Ledger) -> None:
    execute(ledger.database, "UPDATE accounts SET epsilon_spent = 9223372036854775807")
    name = ledger.analysts[0].name
    assert ledger.account(name).balance.common == (2**63 - 1, 0)


def test_columns_of_the_migrations_have_the_types_of_the_app(database: Database) -> None:
    with database.engine.connect() as connection:
        found: Any = inspect(connection)
        for table in tables.metadata.sorted_tables:
            columns = {each["name"]: each for each in found.get_columns(table.name)}
            assert list(columns) == [column.name for column in table.columns]
            for column in table.columns:
                assert columns[column.name]["nullable"] == column.nullable, column
