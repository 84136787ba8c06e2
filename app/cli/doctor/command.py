"""`bursard doctor`: is everything in order? It reads, and changes nothing.

No check shows a private figure, an address or a secret.
"""

import json
from collections.abc import Iterator

import typer

from app.cli.doctor.engines import check_engines
from app.cli.doctor.ledger import check_ledger
from app.cli.doctor.places import check_disk, check_readers
from app.cli.doctor.result import CheckResult, CheckState, failed
from app.cli.doctor.settings import check_settings
from app.cli.exits import WRONG
from app.cli.printing import JsonOption

CHECKS = {
    "ledger": check_ledger,
    "disk": check_disk,
    "engines": check_engines,
    "readers": check_readers,
}


def doctor(as_json: JsonOption = False) -> None:
    """Check settings, ledger, disk, clock, engines and the safety of storage; changes nothing."""
    has_failed = False
    results = []
    for result in checks():
        has_failed = has_failed or result.state is CheckState.FAILED
        if as_json:
            results.append(result.members())
        else:
            print(result.line(), flush=True)
    if as_json:
        print(json.dumps(results, ensure_ascii=False))
    if has_failed:
        raise typer.Exit(WRONG)


def checks() -> Iterator[CheckResult]:
    settings, settings_results = check_settings()
    yield from settings_results
    if settings is None:
        return
    for name, check in CHECKS.items():
        try:
            yield from check(settings)
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            yield failed(name, f"{place}{error.strerror}.", "Check who owns it.")
