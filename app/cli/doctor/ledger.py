"""The ledger: reachable, current, durable, not behind its anchors, and not from the future."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from app.cli.doctor.result import CheckResult, failed, ok, warning
from app.errors import StoreUnavailable
from app.settings import Settings

if TYPE_CHECKING:
    from app.store.connect import Database
    from app.store.examination import Examined

EARLIER_MAX_SECONDS = 2.0
APART_MAX_SECONDS = 5.0
CHECK_URL = "Check BURSAR_DATABASE_URL, and that the database is up."


def check_ledger(settings: Settings) -> Iterator[CheckResult]:
    from app.store.connect import Database

    path = sqlite_path(settings)
    if path is not None and not path.exists():
        yield _not_there(settings)
        return
    try:
        database = Database(settings.database_url, looking=True)
    except (ArgumentError, ValueError):
        yield failed("ledger", "BURSAR_DATABASE_URL is not the URL of a database.", CHECK_URL)
        return
    try:
        yield from _opened(settings, database, path)
    finally:
        database.engine.dispose()


def sqlite_path(settings: Settings) -> Path | None:
    """The file of a ledger in SQLite."""
    if not settings.database_url.startswith("sqlite"):
        return None
    return Path(make_url(settings.database_url).database or "")


def _not_there(settings: Settings) -> CheckResult:
    if settings.embedded:
        return warning("ledger", "there is none yet.", "`bursard serve` makes one.")
    return failed("ledger", "its file is missing.", "Check BURSAR_DATABASE_URL, or migrate.")


def _opened(settings: Settings, database: "Database", path: Path | None) -> Iterator[CheckResult]:
    from app.store.examination import examine
    from app.store.migrate import check_current

    try:
        check_current(database)
        yield ok("ledger", "it is reachable, and its schema is current.")
    except StoreUnavailable as error:
        advice = "`bursard serve` does it too." if settings.embedded else ""
        yield failed("ledger", error.detail, advice)
        return
    except DBAPIError:
        yield failed("ledger", "it cannot be reached or read.", CHECK_URL)
        return
    try:
        yield _storage(database, path)
        facts = examine(database, settings.anchor_folders)
    except (StoreUnavailable, DBAPIError):
        yield failed("ledger", "it cannot be read.", CHECK_URL)
        return
    yield _standing(facts)
    yield from _clock(facts, database)
    yield from _secret_key(settings, facts)
    yield from _anchors(settings, facts)


def _storage(database: "Database", path: Path | None) -> CheckResult:
    from app.store.connect import SQLITE_MIN
    from app.store.examination import has_write_ahead_log
    from app.store.sqlite_driver import sqlite_version, sqlite_version_info

    if path is None:
        try:
            database.check_safe()
        except StoreUnavailable as error:
            return failed("durability", error.detail, "Change it, and restart PostgreSQL.")
        return ok("durability", "PostgreSQL keeps what it has committed.")
    if sqlite_version_info < SQLITE_MIN:
        return failed("durability", f"SQLite {sqlite_version} is too old.", "Install a newer apsw.")
    if not has_write_ahead_log(path):
        advice = "The service sets it at its next start."
        return warning("durability", "the ledger has no write-ahead log.", advice)
    return ok("durability", "the ledger has a write-ahead log, and every commit is flushed.")


def _standing(facts: "Examined") -> CheckResult:
    if facts.behind:
        return failed(
            "rollback",
            f"the ledger is behind its anchors in {len(facts.books_behind)} books"
            f"{', and charging is stopped' if facts.stopped else ''}.",
            "See docs/ledger.md, then run `bursard reconcile --reason TEXT`.",
        )
    return ok("rollback", "the ledger has everything that its anchors have seen.")


def _clock(facts: "Examined", database: "Database") -> Iterator[CheckResult]:
    seconds = (facts.newest_at - time.time_ns() // 1000) / 1e6
    if seconds > EARLIER_MAX_SECONDS:
        text = f"this machine is {seconds:.0f} s earlier than the ledger's newest entry."
        yield failed("clock", text, "Set the clock before you serve.")
    elif abs(facts.clock_ahead) / 1e6 > APART_MAX_SECONDS:
        text = f"PostgreSQL's clock is {facts.clock_ahead / 1e6:+.0f} s from this machine's."
        yield warning("clock", text, "Synchronize both.")
    else:
        agrees = "" if database.is_sqlite else ", and agrees with PostgreSQL's"
        yield ok("clock", f"it is not earlier than the ledger's newest entry{agrees}.")


def _secret_key(settings: Settings, facts: "Examined") -> Iterator[CheckResult]:
    there = settings.secret_key is not None
    if settings.embedded and not there:
        there = (settings.home / "secret.key").is_file()
    if facts.sealed_streams and not there:
        text = f"{facts.sealed_streams} open streams need it, and it is missing."
        yield failed("secret key", text, "Put secret.key or BURSAR_SECRET_KEY back.")
    elif not there and not settings.embedded:
        advice = "Set BURSAR_SECRET_KEY, the same for every server."
        yield warning("secret key", "no `above_threshold` stream can be opened.", advice)
    else:
        yield ok("secret key", "it is there." if there else "no stream needs it yet.")


def _anchors(settings: Settings, facts: "Examined") -> Iterator[CheckResult]:
    if facts.anchor_files == 0:
        text = "there are none, so a restored ledger would not be noticed."
        yield warning("anchors", text, "The next start writes them.")
    else:
        yield ok("anchors", f"{facts.anchor_files} files record where the ledger ends.")
    second, first = settings.anchor, settings.home / "anchors"
    if second is None:
        text = "there is no second folder, so a restored home notices nothing."
        yield warning("anchors", text, "Set BURSAR_ANCHOR, best to a folder on another disk.")
    elif second.resolve() == first.resolve() or second.resolve().is_relative_to(
        settings.home.resolve()
    ):
        text = "BURSAR_ANCHOR is in the home, and would be restored with it."
        yield failed("anchors", text, "Name a folder elsewhere, best on another disk.")
    elif not second.is_dir():
        text = "the folder of BURSAR_ANCHOR does not exist yet."
        yield warning("anchors", text, "The next start makes it.")
    elif first.is_dir() and second.stat().st_dev == first.stat().st_dev:
        text = "BURSAR_ANCHOR is on the same disk as the home."
        yield warning("anchors", text, "A folder on another disk survives this one.")
