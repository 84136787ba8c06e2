"""Commands about the ledger as a whole: migrate, verify, reconcile, export, calibrate."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.exits import WRONG, Failure
from app.cli.opened import existing_ledger, make_stores, operator
from app.settings import Settings

if TYPE_CHECKING:
    from app.ledger.verification.report import Report


def migrate() -> None:
    """Migrate the ledger to this program's schema."""
    from app.store.administration import install
    from app.store.migrate import migrate as bring

    settings = Settings.from_environment()
    database = make_stores(settings).database
    bring(database)
    install(database)
    print("The ledger's schema is current.")


def calibrate() -> None:
    """Measure the BURSAR_SLOT_FACTOR of this machine on synthetic rows; run it while idle."""
    from app.cli.calibrate import measured_factor

    print(f"BURSAR_SLOT_FACTOR={measured_factor():.2f}")


def verify(
    file: Annotated[Path | None, typer.Option(help="Verify this export instead.")] = None,
    backup: Annotated[Path | None, typer.Option(help="Verify this backup instead.")] = None,
) -> None:
    """Recompute every chain and total; exits with 1 if anything disagrees."""
    from app.ledger.verification.lines import from_lines
    from app.ledger.verification.verify import verify as check

    if backup is not None:
        report = _verified_backup(backup)
    elif file is None:
        with existing_ledger(Settings.from_environment()) as stores:
            report, _ = stores.verify_ledger()
    else:
        try:
            with file.open(encoding="utf-8") as lines:
                report = check(from_lines(lines))
        except ValueError as error:
            raise Failure(f"{file}: {error}", code=WRONG) from None
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
        raise typer.Exit(WRONG)


def _verified_backup(folder: Path) -> "Report":
    from app.cli.backup.commands import verified_copy
    from app.store.backup import LEDGER, check

    check(folder)
    return verified_copy(folder / LEDGER)


def reconcile(
    reason: Annotated[str, typer.Option(help="Why the ledger was behind its anchors.")],
) -> None:
    """Book the spends that a restored ledger has lost, forfeit open charges, resume charging."""
    with existing_ledger(Settings.from_environment()) as stores:
        booked = stores.reconcile_ledger(operator(), reason=reason)
    print(
        f"Booked in {booked.books} books and {booked.accounts} accounts; {booked.forfeited} open "
        f"charges forfeited, {booked.streams_closed} streams closed. Charging is resumed."
    )


def export() -> None:
    """Write the whole ledger as NDJSON to standard output."""
    from app.ledger.verification.lines import to_line

    with existing_ledger(Settings.from_environment()) as stores:
        for item in stores.history.snapshot(None):
            print(to_line(item))
