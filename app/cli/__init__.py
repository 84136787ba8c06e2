"""Operator commands: serve, demo, migrate, add data, keys, verify, reconcile."""

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy.exc import DBAPIError

from app.cli.check_dataset import check
from app.cli.dataset import OPERATOR, dataset_cli
from app.cli.remove_dataset import remove
from app.errors import AppError
from app.settings import Settings, SettingsError
from app.stopping import REQUESTS_SHARE

cli = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
keys_cli = typer.Typer(no_args_is_help=True, help="Issue, list and revoke API keys.")
dataset_cli.command("check")(check)
dataset_cli.command()(remove)
cli.add_typer(dataset_cli, name="dataset")
cli.add_typer(keys_cli, name="keys")

ADMIN_KEY_LENGTH_MIN = 32


def _stores(settings: Settings) -> Any:
    from app.main import Stores  # engines and drivers load only in the commands that use them

    return Stores(settings)


def _ledger(settings: Settings) -> Any:
    """Stores of an existing ledger with a current schema, with its anchors."""
    from app.store.migrate import check_current

    stores = _stores(settings)
    check_current(stores.database)
    stores.open_anchors(settings)
    return stores


@cli.command()
def serve() -> None:
    """Serve the HTTP interface; settings come from the environment (docs/settings.md)."""
    settings = Settings.from_environment()
    listener = own_port(settings)  # first: a second server would make a key and never use it
    stores = _stores(settings)
    made = stores.get_ready(settings)
    if made is not None:
        print(f"First administrator's key, shown this once and stored nowhere:\n{made}", flush=True)
    if stores.standing.compare().stopped:
        print("The ledger is behind its anchors: it was restored from an older copy, or changed.")
        print(
            "Nothing is charged until the difference is booked: `bursard reconcile --reason TEXT`."
        )
    if settings.admin_key is not None and len(settings.admin_key) < ADMIN_KEY_LENGTH_MIN:
        print(
            "BURSAR_ADMIN_KEY is short: anybody who guesses it owns this service. Use 32 letters."
        )
    if settings.lease_seconds <= settings.engine_timeout_seconds:
        print(
            "BURSAR_LEASE_SECONDS is not above BURSAR_ENGINE_TIMEOUT_SECONDS: a slow question may"
        )
        print("be taken over while it still runs, and after three attempts is charged for nothing.")
    if settings.release_grid_ms == 0:
        print("BURSAR_RELEASE_GRID_MS is 0: response times may reveal something about the data.")
    listen(settings, listener)


def own_port(settings: Settings) -> socket.socket:
    """Listen on the port, or raise SettingsError.

    Only listening reserves the port: two programs may bind the same one. Clients that connect now
    wait until the server is ready.
    """
    # With an explicit protocol number asyncio turns off Nagle's algorithm on a socket that several
    # workers share. Otherwise each reply on a kept connection waits about 45 ms.
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise SettingsError(
            f"Cannot listen on {settings.host}:{settings.port}: {error.strerror}."
        ) from None
    listener.set_inheritable(True)
    return listener


def listen(
    settings: Settings,
    listener: socket.socket,
    announce: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve until a stop signal; `announce` is called with the address."""
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    from app.api.http.sockets import GuardedProtocol

    host, port = listener.getsockname()[:2]
    announce(f"http://{host}:{port}")
    print(f"Bursar serves on http://{host}:{port}", flush=True)
    requests_seconds = settings.stop_seconds * REQUESTS_SHARE
    config = uvicorn.Config(
        "app.main:application",
        factory=True,
        workers=settings.workers,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        http=GuardedProtocol,
        timeout_graceful_shutdown=requests_seconds,  # type: ignore[arg-type]  # only waited for
    )
    server = uvicorn.Server(config)
    if settings.workers == 1:
        server.run(sockets=[listener])
    else:
        Multiprocess(config, sockets=[listener]).run()


@cli.command()
def demo() -> None:
    """Make a ledger with two demo datasets and four keys, print a question to paste, and serve."""
    from app.demo.populate import message, populate

    os.environ.setdefault("BURSAR_HOME", ".bursar-demo")
    os.environ.pop("BURSAR_DATA_ROOTS", None)  # the demo's data are in its own home
    settings = Settings.from_environment()
    listener = own_port(settings)
    keys = populate(settings)
    listen(settings, listener, lambda url: print(message(keys, settings.home, url), flush=True))


@cli.command()
def migrate() -> None:
    """Migrate the ledger to this program's schema."""
    from app.store.administration import install
    from app.store.migrate import migrate as bring

    settings = Settings.from_environment()
    database = _stores(settings).database
    bring(database)
    install(database)
    print("The ledger's schema is current.")


@cli.command()
def calibrate() -> None:
    """Measure the BURSAR_SLOT_FACTOR of this machine on synthetic rows; run it while idle."""
    from app.cli.calibrate import measured_factor

    print(f"BURSAR_SLOT_FACTOR={measured_factor():.2f}")


@cli.command()
def verify(
    file: Annotated[Path | None, typer.Option(help="Verify this export instead.")] = None,
) -> None:
    """Recompute every chain and total; exits with 1 if anything disagrees."""
    from app.ledger.verification.lines import from_lines
    from app.ledger.verification.verify import verify as check

    if file is None:
        report, _ = _ledger(Settings.from_environment()).verify_ledger()
    else:
        try:
            with file.open(encoding="utf-8") as lines:
                report = check(from_lines(lines))
        except (OSError, ValueError) as error:
            print(f"{file}: {error}")
            raise typer.Exit(1) from None
    for finding in report.findings:
        where = finding.account or finding.charge or finding.seq or ""
        print(f"{finding.book} {where}: {finding.problem}")
    verdict = "sound" if report.sound else f"{len(report.findings)} findings"
    for what, number in sorted(report.not_covered.items()):
        print(f"not covered: {number} {what}")
    print(
        f"{report.entries} entries, {report.books} books, {report.accounts} accounts, "
        f"{report.charges} charges: {verdict}"
    )
    if not report.sound:
        raise typer.Exit(1)


@cli.command()
def reconcile(
    reason: Annotated[str, typer.Option(help="Why the ledger was behind its anchors.")],
) -> None:
    """Book the spends that a restored ledger has lost, forfeit open charges, resume charging."""
    from app.access import Principal, Role

    operator = Principal("", OPERATOR, Role.ADMIN, "")
    stores = _ledger(Settings.from_environment())
    booked = stores.reconcile_ledger(operator, reason=reason)
    print(
        f"Booked in {booked.books} books and {booked.accounts} accounts; {booked.forfeited} open "
        f"charges forfeited, {booked.streams_closed} streams closed. Charging is resumed."
    )


@cli.command()
def export() -> None:
    """Write the whole ledger as NDJSON to standard output."""
    from app.ledger.verification.lines import to_line

    for item in _ledger(Settings.from_environment()).history.snapshot(None):
        print(to_line(item))


@keys_cli.command("issue")
def issue(
    name: str, days: Annotated[int | None, typer.Option(help="Expires after n days.")] = None
) -> None:
    """Issue a key for a registered person, shown once; also for an administrator without one."""
    import time

    expires = None if days is None else time.time_ns() // 1000 + days * 86_400_000_000
    _, secret = _ledger(Settings.from_environment()).people.issue_key(
        OPERATOR, name, expires_at=expires, reason="issued by the operator", request=None, body=""
    )
    print(secret)


@keys_cli.command("list")
def list_keys(name: str) -> None:
    """List a person's keys by prefix."""
    people = _stores(Settings.from_environment()).people
    for key in people.keys(people.find(name).id):
        state = "revoked" if key.revoked_at else "issued"
        print(f"{key.id}  {key.prefix}...  {state}")


@keys_cli.command("revoke")
def revoke(key_id: str) -> None:
    """Revoke a key; it stops working at once."""
    _ledger(Settings.from_environment()).people.revoke_key(OPERATOR, key_id, "by the operator")
    print(f"{key_id} is revoked.")


def main() -> None:
    """Run a command; errors that the operator can fix are printed in one line."""
    try:
        cli()
    except SettingsError as error:
        sys.exit(str(error))
    except AppError as error:
        sys.exit(error.detail)
    except DBAPIError:
        sys.exit("The ledger's database cannot be reached: check BURSAR_DATABASE_URL.")


if __name__ == "__main__":
    main()
