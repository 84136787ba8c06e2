"""The ledger as operator commands open it. Engines and drivers load only in these functions."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from app.access import Principal, Role
from app.settings import Settings

if TYPE_CHECKING:
    from app.main.stores import Stores

OPERATOR = "operator"


def operator() -> Principal:
    """The person at the terminal, as the actor of entries in the ledger."""
    return Principal("", OPERATOR, Role.ADMIN, "")


def make_stores(settings: Settings) -> "Stores":
    from app.main.stores import Stores  # imports every package, which takes a second

    return Stores(settings)


@contextmanager
def existing_ledger(settings: Settings) -> Iterator["Stores"]:
    """Stores of an existing ledger with a current schema, with its anchors."""
    from app.store.migrate import check_current

    stores = make_stores(settings)
    try:
        check_current(stores.database)
        stores.open_anchors(settings)
        yield stores
    finally:
        stores.database.engine.dispose()


@contextmanager
def current_ledger(settings: Settings) -> Iterator["Stores"]:
    """Stores of a ledger that may be changed; the embedded ledger is migrated first."""
    stores = make_stores(settings)
    try:
        stores.get_current(settings)
        yield stores
    finally:
        stores.engines.close()
        stores.database.engine.dispose()
