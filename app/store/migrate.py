"""Migrate a ledger to the schema of this program, or refuse a ledger with another schema."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.errors import StoreUnavailable
from app.store.connect import Database

_log = logging.getLogger("bursar.ledger")
LOCK = 0x6275_7273_6172  # "bursar"
# A wheel has the migrations inside the package (setup.py); a checkout has them beside it.
_PACKAGED = Path(__file__).parents[1] / "migrations"
MIGRATIONS = _PACKAGED if _PACKAGED.is_dir() else Path(__file__).parents[2] / "migrations"


def _config() -> Any:
    from alembic.config import Config  # 0.8 s to import: only where it is needed

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return config


def migrate(database: Database) -> None:
    from alembic import command
    from alembic.script import ScriptDirectory

    revision, head = (
        revision_of(database),
        ScriptDirectory.from_config(_config()).get_current_head(),
    )
    if revision is None:
        _log.info("makes a new ledger")
    elif revision != head:
        _log.info("migrates the ledger from %s to %s", revision, head)
    with database.writing() as connection:
        if not database.is_sqlite:  # one migration at a time; SQLite has its own write lock
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def revision_of(database: Database) -> str | None:
    """The schema of a ledger; None if it is empty."""
    from alembic.runtime.migration import MigrationContext

    with database.reading() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def check_current(database: Database) -> None:
    """Refuse a ledger whose schema is not this program's."""
    from alembic.script import ScriptDirectory

    head = ScriptDirectory.from_config(_config()).get_current_head()
    revision = revision_of(database)
    if revision != head:
        raise StoreUnavailable(
            f"The ledger's schema is {revision or 'empty'}, this program needs {head}: "
            "run `bursard migrate`."
        )


@dataclass(frozen=True, slots=True)
class Ready:
    """Check whether a charge could be taken now."""

    database: Database

    def check(self) -> None:
        try:
            check_current(self.database)
            with self.database.writing():
                pass
        except StoreUnavailable:
            raise
        except Exception:  # noqa: BLE001  # driver text stops here
            raise StoreUnavailable("The ledger cannot be reached.") from None
