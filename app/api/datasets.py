"""Datasets: register, show the card, sample rows, describe, close, append epochs, withdraw."""

import json
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request, Response

from app.access import Principal, Role
from app.actions.datasets.public_tables import with_tables
from app.actions.datasets.withdraw_dataset import DETAILS
from app.api.dataset_models import (
    EXAMPLE,
    DatasetChange,
    DatasetRequest,
    DatasetResponse,
    DatasetsResponse,
    DraftRequest,
    DraftResponse,
    SampleResponse,
    WithdrawResponse,
)
from app.api.http.json_body import (
    ErrorTranslator,
    Parsed,
    StrictAdapter,
    body,
    hash_at,
    parse,
    read_body,
    request_key,
    unchanged,
)
from app.api.http.openapi import documented, problems
from app.api.http.principal import Admin, Anyone, AnyoneHot, ServicesDep
from app.api.http.services import Services
from app.api.http.wire import (
    CursorIn,
    Limit,
    cursor_place,
    cursor_text,
    iso,
    json_response,
)
from app.data.card import Card, Dataset, Source
from app.data.sample_rows import sample_rows
from app.errors import Invalid
from app.ledger.chain import canonical

router = APIRouter(tags=["datasets"])


_REGISTRATION: StrictAdapter[DatasetRequest] = StrictAdapter(DatasetRequest)


class _Repeated(Exception):
    """The same request was carried out before."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset


async def _registration(
    request: Request, deps: ServicesDep, principal: Admin
) -> Parsed[DatasetRequest] | Dataset:
    """The body with its public tables read. Only an administrator can have a file read.

    For a repeated request it is the registered dataset, even if the tables have changed since.
    """
    key = request_key(request)

    def read(raw: bytes) -> Parsed[DatasetRequest] | Dataset:
        texts: list[str] = []

        def translate(sent: Any) -> tuple[Any, ErrorTranslator]:
            texts.append(canonical(sent))
            name = _request_name(principal, key)
            earlier = deps.datasets.remembered(name, hash_at(request, texts[0]))
            if earlier is not None:
                raise _Repeated(earlier)
            return with_tables(sent, deps.tables, deps.datasets.private_files), unchanged

        try:
            return parse(raw, _REGISTRATION, key, translate).at(request, *texts)
        except _Repeated as repeated:
            return repeated.dataset

    return await read_body(request, read, reads_files=True)


def _request_name(principal: Principal, key: str | None) -> str | None:
    return key and f"{principal.analyst_id}/{key}"


@router.post(
    "/v1/datasets",
    **documented(
        "register_dataset",
        "Register a dataset",
        DatasetResponse,
        status=201,
        request=DatasetRequest,
        example=EXAMPLE,
        extra_problems=problems(409),
        idempotent=True,
    ),
)
def register(
    deps: ServicesDep,
    principal: Admin,
    parsed: Annotated[Parsed[DatasetRequest] | Dataset, Depends(_registration)],
) -> Response:
    """The card is checked against the file's column names and types, never against its values. The
    same rows or the same file under another name share the loss of the first. A lookup of a derived
    column may name a public table, `{"path", "key", "value"}`. It is read now and becomes part of
    the card, which everybody with a budget on the dataset sees."""
    dataset = parsed if isinstance(parsed, Dataset) else _register(deps, principal, parsed)
    headers = {"Location": f"/v1/datasets/{quote(dataset.name, safe='')}"}
    return json_response(_shown(deps, principal, dataset), status=201, headers=headers)


def _register(deps: Services, principal: Principal, parsed: Parsed[DatasetRequest]) -> Dataset:
    registration = parsed.value
    fields = {name: getattr(registration, name) for name in Card.model_fields}
    return deps.register_dataset(
        principal,
        name=registration.name,
        description=registration.description,
        source=registration.source.source(),
        card=Card.model_construct(**fields),
        reason=registration.reason,
        request=_request_name(principal, parsed.request_key),
        body=parsed.hash,
    )


@router.post(
    "/v1/drafts",
    **documented(
        "draft_card",
        "Draft a card from names and types",
        DraftResponse,
        request=DraftRequest,
        example={"source": {"engine": "duckdb", "path": "census.parquet"}},
    ),
)
def draft(
    deps: ServicesDep,
    principal: Admin,
    parsed: Annotated[Parsed[DraftRequest], Depends(body(DraftRequest))],
) -> Response:
    """The columns of a source by name and type. No value is read, and nothing is stored. Bounds,
    categories and the person stay open, for people who know them publicly."""
    drafted = deps.draft_card(principal, parsed.value.source.source())
    content = {"card": drafted.card, "missing": drafted.missing, "left_out": drafted.left_out}
    return json_response(content)


@router.get("/v1/datasets", **documented("list_datasets", "Datasets", DatasetsResponse))
def list_datasets(
    deps: ServicesDep, principal: Anyone, limit: Limit = 50, cursor: CursorIn = None
) -> Response:
    """Datasets that you have a budget on; administrators and viewers see all."""
    holders = principal.holders if principal.role is Role.ANALYST else None
    (after,) = cursor_place(cursor, str) or ("",)
    found = deps.datasets.all(holders=holders, after=after, limit=limit)
    following = cursor_text(found[-1].id) if len(found) == limit else None
    items = [_shown(deps, principal, dataset) for dataset in found]
    return json_response({"items": items, "next_cursor": following})


@router.get(
    "/v1/datasets/{dataset}",
    **documented("get_dataset", "The public card", DatasetResponse, extra_problems=problems(404)),
)
def get_dataset(deps: ServicesDep, principal: Anyone, dataset: str) -> Response:
    return json_response(_shown(deps, principal, visible(deps, principal, dataset)))


@router.get(
    "/v1/datasets/{dataset}/sample",
    **documented(
        "sample_dataset", "Made-up rows", SampleResponse, extra_problems=problems(404, 429)
    ),
)
async def sample(
    deps: ServicesDep,
    principal: AnyoneHot,
    dataset: str,
    rows: Annotated[int, Query(ge=1, le=1000)] = 20,
) -> Response:
    """Rows drawn from the public card alone, for development without cost."""

    def drawn() -> Response:
        found = visible(deps, principal, dataset)
        return json_response({"made_up": True, "rows": sample_rows(found.card, rows, deps.choice)})

    return await deps.reading.run(principal.analyst_id, drawn)


@router.patch(
    "/v1/datasets/{dataset}",
    **documented(
        "change_dataset",
        "Describe, close or reopen, append an epoch",
        DatasetResponse,
        request=DatasetChange,
        example={"append": {"path": "census-2026-02.parquet"}, "reason": "those of February"},
        extra_problems=problems(404, 409),
    ),
)
def change(
    deps: ServicesDep,
    principal: Admin,
    dataset: str,
    parsed: Annotated[Parsed[DatasetChange], Depends(body(DatasetChange))],
) -> Response:
    changes = parsed.value
    if changes.append is not None:
        alone = changes.description is None and changes.status is None and changes.refresh is None
        if not alone:
            raise Invalid.field("/append", "an epoch is appended by itself: leave the rest out")
        location = changes.append.path or changes.append.table
        if location is None or (changes.append.path and changes.append.table):
            raise Invalid.field("/append/path", "where the new rows are, stated once")
        appended = deps.append_epoch(principal, name=dataset, path=location, reason=changes.reason)
        return json_response(_shown(deps, principal, appended))
    if changes.refresh is not None:
        if not changes.refresh:
            raise Invalid.field("/refresh", "true, or left out")
        if changes.description is not None or changes.status is not None:
            raise Invalid.field("/refresh", "a version is declared by itself: leave the rest out")
        declared = deps.refresh_dataset(principal, name=dataset, reason=changes.reason)
        return json_response(_shown(deps, principal, declared))
    changed = deps.datasets.alter(
        principal.name,
        dataset,
        description=changes.description,
        closed=None if changes.status is None else changes.status == "closed",
        reason=changes.reason,
    )
    return json_response(_shown(deps, principal, changed))


@router.delete(
    "/v1/datasets/{dataset}",
    **documented(
        "withdraw_dataset",
        "Withdraw a name",
        WithdrawResponse,
        extra_problems=problems(404),
        idempotent=True,
    ),
)
def withdraw(
    request: Request,
    deps: ServicesDep,
    principal: Admin,
    dataset: str,
    reason: Annotated[str | None, Query(max_length=1000, pattern=r"^[^\x00]*$")] = None,
) -> Response:
    """If nothing was ever charged or booked for its data, the name, its card and its prepared rows
    are removed. Then the same data may be registered again, with another person or neighbouring
    relation. Otherwise the name closes, and the spent budget stays spent."""
    key = request_key(request)
    outcome = deps.withdraw_dataset(
        principal,
        name=dataset,
        reason=reason,
        request=_request_name(principal, key),
        body=hash_at(request, canonical(reason)),
    )
    reply = {"dataset": dataset, "status": outcome.value, "detail": DETAILS[outcome]}
    return json_response(reply)


def visible(deps: Services, principal: Principal, name: str) -> Dataset:
    """The dataset if this caller may know of it; otherwise NotFound, as for a missing one."""
    holders = principal.holders if principal.role is Role.ANALYST else None
    return deps.datasets.find(name, holders)


def _shown(deps: Services, principal: Principal, dataset: Dataset) -> dict[str, Any]:
    shown = {
        "name": dataset.name,
        "description": dataset.description,
        **json.loads(dataset.card.model_dump_json()),
        "version": dataset.version.number,
        "status": "closed" if dataset.closed else "open",
        "registered_at": iso(dataset.created_at),
    }
    if principal.role is Role.ADMIN:
        shown["source"] = _source_shown(dataset.source)
        shown["fingerprint"] = deps.datasets.fingerprint(dataset)
    return shown


def _source_shown(source: Source) -> dict[str, str]:
    if source.connection is None:
        return {"engine": source.engine, "path": source.path}
    named = "path" if "/" in source.path else "table"
    return {"engine": source.engine, "connection": source.connection, named: source.path}
