"""`bursard keys`: issue, list and revoke keys on the machine of the ledger."""

import time
from typing import Annotated

import typer

from app.cli.opened import OPERATOR, existing_ledger
from app.cli.printing import JsonOption, print_rows
from app.settings import Settings

keys_cli = typer.Typer(no_args_is_help=True, help="Issue, list and revoke API keys.")
DAY_MICROSECONDS = 86_400_000_000
COLUMNS = ("id", "prefix", "state", "created_at", "expires_at", "revoked_at")


@keys_cli.command("issue")
def issue(
    name: Annotated[str, typer.Argument(help="A registered person.")],
    days: Annotated[int | None, typer.Option(min=1, help="Expires after n days.")] = None,
) -> None:
    """Issue a key for a registered person, shown once; also for an administrator without one."""
    expires = None if days is None else time.time_ns() // 1000 + days * DAY_MICROSECONDS
    with existing_ledger(Settings.from_environment()) as stores:
        _, secret = stores.people.issue_key(
            OPERATOR,
            name,
            expires_at=expires,
            reason="issued by the operator",
            request=None,
            body="",
        )
    print(secret)


@keys_cli.command("list")
def list_keys(
    name: Annotated[str, typer.Argument(help="A registered person.")], as_json: JsonOption = False
) -> None:
    """List a person's keys by prefix."""
    from app.api.http.wire import iso

    with existing_ledger(Settings.from_environment()) as stores:
        keys = stores.people.keys(stores.people.find(name).id)
    now = time.time_ns() // 1000
    rows = []
    for key in keys:
        state = "issued" if key.valid_at(now) else "revoked" if key.revoked_at else "expired"
        times = (iso(key.created_at), iso(key.expires_at), iso(key.revoked_at))
        values = (key.id, f"{key.prefix}...", state, *times)
        rows.append(dict(zip(COLUMNS, values, strict=True)))
    print_rows(rows, COLUMNS, as_json=as_json)


@keys_cli.command("revoke")
def revoke(key_id: Annotated[str, typer.Argument(help="Its id, as `list` shows it.")]) -> None:
    """Revoke a key; it stops working at once."""
    with existing_ledger(Settings.from_environment()) as stores:
        stores.people.revoke_key(OPERATOR, key_id, "by the operator")
    print(f"{key_id} is revoked.")
