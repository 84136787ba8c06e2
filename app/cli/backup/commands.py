"""`bursard backup` and `bursard restore`: a ledger in SQLite, and what to type for PostgreSQL.

The anchors in the home are never part of a backup: they notice what a restored ledger has lost.
"""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.doctor.ledger import sqlite_path
from app.cli.exits import WRONG, Failure, confirm
from app.settings import Settings

if TYPE_CHECKING:
    from app.ledger.verification.report import Report
    from app.store.backup import Manifest

APART = """\
The secret of streams, {where}, is not in the backup: keep it apart.
Somebody with both could read the noise that open streams have drawn."""
INSIDE = "The backup contains secret.key: it shows the noise that open streams have drawn."
ANCHORS = "Keep the anchors as they are: they notice what a restored ledger has lost."


def backup(
    target: Annotated[Path, typer.Argument(help="A folder to make for the backup.")],
    with_secret_key: Annotated[
        bool, typer.Option("--with-secret-key", help="Copy secret.key too; better keep it apart.")
    ] = False,
) -> None:
    """Copy the ledger while servers run, and verify the copy; for PostgreSQL print what to type."""
    from app.store.backup import LEDGER, take

    settings = Settings.from_environment()
    ledger = sqlite_path(settings)
    if ledger is None:
        _print_for_postgresql(settings, target)
        raise Failure("Nothing was backed up: the ledger is in PostgreSQL.", "Type the above.")
    if not ledger.exists():
        raise Failure(f"There is no ledger at {ledger}.", "Check BURSAR_HOME.")
    secret = settings.home / "secret.key"
    if with_secret_key and not secret.is_file():
        raise Failure(f"There is no {secret}.", "Leave --with-secret-key out.")
    target = target.absolute()
    manifest = take(ledger, target, secret if with_secret_key else None)
    size = manifest.bytes / 1e6
    print(f"{target}: {manifest.entries} entries, {len(manifest.books)} books, {size:.1f} MB")
    if with_secret_key:
        print(INSIDE)
    elif secret.is_file() or settings.secret_key is not None:
        where = "BURSAR_SECRET_KEY" if settings.secret_key is not None else str(secret)
        print(APART.format(where=where))
    report = verified_copy(target / LEDGER)
    if not report.sound:
        raise Failure(
            "The backup is a true copy, and the ledger in it is not sound.",
            f"`bursard verify --backup {shlex.quote(str(target))}` names every finding.",
            WRONG,
        )
    print("The copy is verified: sound.")


def restore(
    source: Annotated[Path, typer.Argument(help="The folder of a backup.")],
    yes: Annotated[bool, typer.Option("--yes", help="Replace the present ledger.")] = False,
) -> None:
    """Put a backup in the place of the ledger; stop every server first. Anchors are kept."""
    from app.store.anchors.files import in_use
    from app.store.backup import HELD, check, present, put_back

    settings = Settings.from_environment()
    ledger = sqlite_path(settings)
    if ledger is None:
        _print_for_postgresql(settings, source)
        raise Failure("Nothing was restored: the ledger is in PostgreSQL.", "Type the above.")
    manifest = check(source)
    if in_use(settings.anchor_folders, manifest.ledger):
        raise Failure(HELD, code=WRONG)
    print(f"{source}: {manifest.entries} entries, taken at {manifest.taken_at}")
    if ledger.exists():
        entries = present(ledger)
        shown = "cannot be read" if entries is None else f"has {entries} entries"
        print(f"The ledger at {ledger} {shown}. It is kept under another name.")
        confirm("Replace it by the backup?", yes=yes)
    kept = put_back(source, manifest, ledger)
    print(f"The ledger at {ledger} is restored.")
    if kept is not None:
        print(f"The replaced ledger is {kept}: no server may use it any more.")
    _put_secret_back(settings, source, manifest)
    _compare(settings)


def _put_secret_back(settings: Settings, source: Path, manifest: "Manifest") -> None:
    from app.store.backup import SECRET, copy_file

    own = settings.home / SECRET
    if settings.secret_key is not None or not settings.embedded:
        return
    if own.exists():
        print(f"{own} is kept unchanged.")
    elif manifest.secret_key:
        copy_file(source / SECRET, own)
        print(f"{own} is restored from the backup.")
    else:
        print(f"There is no {own}: put it back if streams are open.")


def _compare(settings: Settings) -> None:
    """Say whether the restored ledger is behind its anchors; the next start stops its charges."""
    from app.errors import StoreUnavailable
    from app.store.connect import Database
    from app.store.examination import examine
    from app.store.migrate import check_current

    database = Database(settings.database_url, looking=True)
    try:
        check_current(database)
        facts = examine(database, settings.anchor_folders)
    except StoreUnavailable as error:
        print(f"{error.detail} Then run `bursard doctor`.")
        return
    finally:
        database.engine.dispose()
    if facts.behind:
        print("It is behind its anchors: charges since the backup are missing. Nothing is charged")
        print("until you run `bursard reconcile --reason TEXT`: see docs/operations.md.")
    elif facts.anchor_files == 0:
        print("No anchors here know this ledger, so nobody can notice what it lacks. If it was")
        print("used since the backup, book the difference first: see docs/operations.md.")
    else:
        print("It has everything that its anchors have seen.")


def verified_copy(ledger: Path) -> "Report":
    """Recompute the ledger in a backup, which stays unchanged."""
    from app.ledger.verification.verify import verify
    from app.store.connect import Database
    from app.store.history.history import SqlHistory

    database = Database(f"sqlite:///{ledger}", looking=True)
    try:
        return verify(SqlHistory(database).snapshot(None))
    finally:
        database.engine.dispose()


def _print_for_postgresql(settings: Settings, target: Path) -> None:
    from sqlalchemy import make_url

    url = make_url(settings.database_url)._replace(drivername="postgresql", password=None)
    address, dump = shlex.quote(url.render_as_string()), shlex.quote(str(target))
    print("# Back up, while servers run. The password comes from PGPASSWORD or ~/.pgpass:")
    print(f"pg_dump --format=custom --file={dump} {address}")
    print("# Restore, after every server is stopped, into an empty database:")
    print(f"pg_restore --no-owner --dbname={address} {dump}")
    print("bursard verify")
    print(f"# {ANCHORS}")
    folders = " and ".join(map(str, settings.anchor_folders))
    print(f"# They are in {folders}. Keep BURSAR_SECRET_KEY apart.")
