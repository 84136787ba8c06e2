"""The ledger: its entries, an export that anyone can verify, and verification."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from app.access import holder_of
from app.api.http.json_body import Parsed, body
from app.api.http.openapi import documented, problems
from app.api.http.principal import Admin, Auditor, ServicesDep
from app.api.http.services import Services
from app.api.http.wire import (
    CursorIn,
    HolderIn,
    Limit,
    OrderIn,
    SinceIn,
    WireRequest,
    cursor_place,
    cursor_text,
    iso,
    json_response,
    known_kind,
    since_microseconds,
)
from app.ledger.chain import ENTRY_KINDS, SYSTEM_BOOK, Entry
from app.ledger.records import Search
from app.ledger.verification.lines import to_line

router = APIRouter(tags=["ledger"])

EntryDatasetIn = Annotated[
    str | None,
    Query(
        max_length=200,
        pattern=r"^[^\x00]*$",
        description="Only the book of this dataset; `system` for people.",
    ),
]
EntryKindIn = Annotated[
    str | None,
    Query(
        max_length=100,
        description="Only entries of this kind.",
        json_schema_extra={"enum": [*ENTRY_KINDS]},
    ),
]


class EntryResponse(BaseModel):
    """One entry; `hash` is the SHA-256 of the previous hash, a line feed, and `text`."""

    book: str
    seq: int
    at: str
    kind: str
    actor: str
    body: dict[str, Any]
    text: str
    hash: str


class EntriesResponse(BaseModel):
    items: list[EntryResponse]
    next_cursor: str | None


class FindingResponse(BaseModel):
    """A disagreement and where it is: a book, and in it an entry, an account, a charge or an
    ask.
    """

    book: str
    seq: int | None
    account: str | None
    problem: str
    charge: str | None


class AnchorsResponse(BaseModel):
    points: int
    stopped: bool


class VerifyResponse(BaseModel):
    """`not_covered` counts, by kind, what could not be compared. `anchors` states
    how many anchor points were compared with the ledger. It also states whether charging is stopped
    because the ledger lacks entries that the anchors have seen."""

    sound: bool
    entries: int
    books: int
    accounts: int
    charges: int
    findings: list[FindingResponse]
    not_covered: dict[str, int]
    anchors: AnchorsResponse


class ReconcileRequest(WireRequest):
    """Why the ledger was behind: a restored backup, a failover."""

    reason: Annotated[str, Field(min_length=1, max_length=1000)]


class ReconciledResponse(BaseModel):
    """Number of books and accounts in which a difference was booked, of open charges and asks that
    were forfeited, and of streams that were closed."""

    books: int
    accounts: int
    forfeited: int
    streams_closed: int


@router.get(
    "/v1/ledger",
    **documented("list_entries", "Entries", EntriesResponse, extra_problems=problems(404)),
)
def list_entries(
    deps: ServicesDep,
    principal: Auditor,
    dataset: EntryDatasetIn = None,
    holder: HolderIn = None,
    kind: EntryKindIn = None,
    since: SinceIn = None,
    order: OrderIn = "oldest",
    limit: Limit = 100,
    cursor: CursorIn = None,
) -> Response:
    """With `dataset` the order is the chain's own and has no gaps, so that a cursor
    can follow it for ever. `holder` (an analyst, `group:name` or `*`) selects the entries that
    charged, refunded, booked on or granted that account."""
    after = cursor_place(cursor, int, str, int)
    search = Search(
        holder=None if holder is None else holder_of(holder),
        kind=known_kind(kind, ENTRY_KINDS),
        since=since_microseconds(since),
    )
    book = _book(deps, dataset)
    entries = deps.history.entries(
        book_id=book, after=after, limit=limit, search=search, newest=order == "newest"
    )
    last = entries[-1] if entries else None
    following = None
    if last is not None and len(entries) == limit:
        following = cursor_text(last.at, last.book_id, last.seq)
    return json_response({"items": [_shown(entry) for entry in entries], "next_cursor": following})


@router.get(
    "/v1/ledger/export",
    response_class=StreamingResponse,
    **documented("export_ledger", "Everything, as NDJSON", None, extra_problems=problems(404)),
)
def export(deps: ServicesDep, principal: Auditor, dataset: EntryDatasetIn = None) -> Response:
    """Entries with their hash chain, then books, accounts and charges at the same instant, and a
    last line that counts them. This is enough to verify every total without us
    (`bursard verify --file`)."""
    book = _book(deps, dataset)

    def lines() -> Iterator[str]:
        for item in deps.history.snapshot(book):
            yield to_line(item) + "\n"

    return StreamingResponse(lines(), media_type="application/x-ndjson")


@router.get(
    "/v1/ledger/verify",
    **documented(
        "verify_ledger", "Recompute everything", VerifyResponse, extra_problems=problems(429)
    ),
)
async def verify_ledger(deps: ServicesDep, principal: Admin) -> Response:
    """Recomputes every chain and every total from the entries, and compares every row with them and
    every stored answer with its stamp. Disagreements are listed."""
    report, compared = await deps.verifying.run(principal.analyst_id, deps.verify_ledger)
    anchors = {"points": compared.points, "stopped": compared.stopped}
    return json_response({"sound": report.sound, **asdict(report), "anchors": anchors})


@router.post(
    "/v1/ledger/reconcile",
    **documented(
        "reconcile_ledger",
        "Book the spends that a restored ledger has lost",
        ReconciledResponse,
        request=ReconcileRequest,
        example={"reason": "restored from the backup of Sunday"},
        extra_problems=problems(409),
    ),
)
def reconcile_ledger(
    deps: ServicesDep,
    principal: Admin,
    parsed: Annotated[Parsed[ReconcileRequest], Depends(body(ReconcileRequest))],
) -> Response:
    """For a ledger that is behind its anchors. The spends of the lost entries are booked on the
    accounts, open charges are forfeited and open streams closed; then charging resumes. Lost
    changes of people, limits and datasets must be made again by hand."""
    return json_response(asdict(deps.reconcile_ledger(principal, reason=parsed.value.reason)))


def _book(deps: Services, dataset: str | None) -> str | None:
    if dataset is None or dataset == SYSTEM_BOOK:
        return dataset
    return deps.datasets.find(dataset).book_id


def _shown(entry: Entry) -> dict[str, Any]:
    said = json.loads(entry.text)
    return {
        "book": entry.book_id,
        "seq": entry.seq,
        "at": iso(entry.at),
        "kind": entry.kind,
        "actor": said["actor"],
        "body": said["body"],
        "text": entry.text,
        "hash": entry.hash,
    }
