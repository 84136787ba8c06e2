"""Datasets: register, the public card, made-up rows, describe, close, append epochs, withdraw."""

import asyncio
import json
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, Field

from app.access import Principal, Role
from app.actions.datasets.public_tables import with_tables
from app.actions.datasets.sample_rows import sample_rows
from app.actions.datasets.withdraw_dataset import DETAILS
from app.api.http.json_body import (
    ErrorTranslator,
    Parsed,
    StrictAdapter,
    body,
    hash_at,
    parse,
    read_bytes,
    request_key,
    unchanged,
)
from app.api.http.openapi import documented, problems
from app.api.http.principal import Admin, Anyone, ServicesDep
from app.api.http.services import Services
from app.api.http.wire import (
    CursorIn,
    Limit,
    Reason,
    WireRequest,
    cursor_place,
    cursor_text,
    iso,
    json_response,
)
from app.data.card import Card, Cells, Dataset, Neighbours, Person, Source
from app.data.columns import Column
from app.errors import Invalid
from app.ledger.chain import canonical

router = APIRouter(tags=["datasets"])

Description = Annotated[str, Field(max_length=10_000)]

EXAMPLE = {
    "name": "census",
    "description": "Made-up persons like those of a census",
    "source": {"engine": "duckdb", "path": "census.parquet"},
    "person": {"kind": "row"},
    "neighbours": "add_remove",
    "columns": [
        {"name": "age", "type": "integer", "low": 0, "high": 120},
        {"name": "income", "type": "number", "low": 0, "high": 200000},
        {"name": "region", "type": "category", "values": ["north", "south", "east", "west"]},
        {"name": "smoker", "type": "boolean"},
        {"name": "seen", "type": "date", "low": "2020-01-01", "high": "2025-12-31"},
    ],
    "cells": {"column": "region"},
}


Place = Annotated[str, Field(min_length=1, max_length=1000)]


class SourceRequest(WireRequest):
    """Where the rows are. `duckdb`: the `path` of a CSV or Parquet file, or of a folder of Parquet
    files, in one of the folders of BURSAR_DATA_ROOTS. `postgresql` and `spark`: a `table`, or for
    Spark the `path` of a folder of Parquet files, behind a `connection` that the operator named."""

    engine: Literal["duckdb", "postgresql", "spark"] = "duckdb"
    path: Place | None = None
    table: Place | None = None
    connection: Place | None = None

    def source(self) -> Source:
        here = self.engine == "duckdb"
        if here and self.table is not None:
            raise Invalid.field("/source/table", "left out: a file is named by its path")
        if here and self.connection is not None:
            raise Invalid.field("/source/connection", "left out: a file needs none")
        if self.engine == "postgresql" and self.path is not None:
            raise Invalid.field("/source/path", "left out: a table is named by `table`")
        if not here and self.connection is None:
            raise Invalid.field("/source/connection", "the name of a connection")
        place = self.table or self.path
        if place is None or (self.table and self.path):
            wanted = {"duckdb": "path", "postgresql": "table", "spark": "table"}[self.engine]
            raise Invalid.field(f"/source/{wanted}", "where the rows are, said once")
        return Source(self.engine, place, self.connection)


class DatasetRequest(Card):
    """A dataset's name and source, and its public card."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    description: Description = ""
    source: SourceRequest
    reason: Reason = None


class EpochRequest(WireRequest):
    """New rows, with the columns of the dataset's first: a file's `path`, or a `table` behind the
    dataset's own connection."""

    path: Place | None = None
    table: Place | None = None


class DatasetChange(WireRequest):
    """What may change: the description, whether questions are answered, and, by itself, the rows:
    `append` adds those of a file or table as the next epoch, `refresh` declares a new version of a
    source that has changed since it was registered."""

    append: EpochRequest | None = None
    refresh: bool | None = None
    description: Description | None = None
    status: Literal["open", "closed"] | None = None
    reason: Reason = None


class DatasetResponse(BaseModel):
    """The public card; source and fingerprint only for administrators."""

    name: str
    description: str
    person: Person
    neighbours: Neighbours
    rows: int | None
    columns: list[Annotated[Column, Field(discriminator="type")]]
    cells: Cells | None
    version: int
    status: str
    registered_at: str
    source: dict[str, str] | None = None
    fingerprint: str | None = None


class DatasetsResponse(BaseModel):
    items: list[DatasetResponse]
    next_cursor: str | None


class WithdrawResponse(BaseModel):
    """What became of the name; `detail` says it in a sentence."""

    dataset: str
    status: Literal["withdrawn", "closed"]
    detail: str


class SampleResponse(BaseModel):
    """Made-up rows: drawn from the card, not from the data."""

    made_up: Literal[True]
    rows: list[dict[str, Any]]


_REGISTRATION: StrictAdapter[DatasetRequest] = StrictAdapter(DatasetRequest)


class _Repeated(Exception):
    """The same request was carried out before."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset


async def _registration(
    request: Request, given: ServicesDep, principal: Admin
) -> Parsed[DatasetRequest] | Dataset:
    """The body with its public tables read: of an administrator, so no one else has a file read.
    Of a request that is repeated, what was registered, whatever has become of the tables since."""
    raw, key = await read_bytes(request), request_key(request)

    def read() -> Parsed[DatasetRequest] | Dataset:
        texts: list[str] = []

        def translate(sent: Any) -> tuple[Any, ErrorTranslator]:
            texts.append(canonical(sent))
            name = _request_name(principal, key)
            earlier = given.datasets.remembered(name, hash_at(request, texts[0]))
            if earlier is not None:
                raise _Repeated(earlier)
            return with_tables(sent, given.tables, given.datasets.private_files), unchanged

        try:
            return parse(raw, _REGISTRATION, key, translate).at(request, *texts)
        except _Repeated as repeated:
            return repeated.dataset

    return await asyncio.to_thread(read)


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
    given: ServicesDep,
    principal: Admin,
    parsed: Annotated[Parsed[DatasetRequest] | Dataset, Depends(_registration)],
) -> Response:
    """The card is checked against the file's column names and types, never against its values. The
    same rows or the same file under another name share the loss of the first. A lookup of a derived
    column may name a public table, `{"path", "key", "value"}`: it is read now and becomes part of
    the card, which everybody who may ask sees."""
    dataset = parsed if isinstance(parsed, Dataset) else _register(given, principal, parsed)
    headers = {"Location": f"/v1/datasets/{quote(dataset.name, safe='')}"}
    return json_response(_shown(given, principal, dataset), status=201, headers=headers)


def _register(given: Services, principal: Principal, parsed: Parsed[DatasetRequest]) -> Dataset:
    wanted = parsed.value
    fields = {name: getattr(wanted, name) for name in Card.model_fields}
    return given.register_dataset(
        principal,
        name=wanted.name,
        description=wanted.description,
        source=wanted.source.source(),
        card=Card.model_construct(**fields),
        reason=wanted.reason,
        request=_request_name(principal, parsed.request_key),
        body=parsed.hash,
    )


@router.get("/v1/datasets", **documented("list_datasets", "Datasets", DatasetsResponse))
def list_datasets(
    given: ServicesDep, principal: Anyone, limit: Limit = 50, cursor: CursorIn = None
) -> Response:
    """Those you have a budget on; administrators and viewers see all."""
    holders = principal.holders if principal.role is Role.ANALYST else None
    (after,) = cursor_place(cursor, str) or ("",)
    found = given.datasets.all(holders=holders, after=after, limit=limit)
    following = cursor_text(found[-1].id) if len(found) == limit else None
    items = [_shown(given, principal, dataset) for dataset in found]
    return json_response({"items": items, "next_cursor": following})


@router.get(
    "/v1/datasets/{dataset}",
    **documented("get_dataset", "The public card", DatasetResponse, extra_problems=problems(404)),
)
def get_dataset(given: ServicesDep, principal: Anyone, dataset: str) -> Response:
    return json_response(_shown(given, principal, visible(given, principal, dataset)))


@router.get(
    "/v1/datasets/{dataset}/sample",
    **documented("sample_dataset", "Made-up rows", SampleResponse, extra_problems=problems(404)),
)
def sample(
    given: ServicesDep,
    principal: Anyone,
    dataset: str,
    rows: Annotated[int, Query(ge=1, le=1000)] = 20,
) -> Response:
    """Rows drawn from the public card alone, to develop against for free."""
    found = visible(given, principal, dataset)
    return json_response({"made_up": True, "rows": sample_rows(found.card, rows, given.choice)})


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
    given: ServicesDep,
    principal: Admin,
    dataset: str,
    parsed: Annotated[Parsed[DatasetChange], Depends(body(DatasetChange))],
) -> Response:
    wanted = parsed.value
    if wanted.append is not None:
        alone = wanted.description is None and wanted.status is None and wanted.refresh is None
        if not alone:
            raise Invalid.field("/append", "an epoch is appended by itself: leave the rest out")
        place = wanted.append.path or wanted.append.table
        if place is None or (wanted.append.path and wanted.append.table):
            raise Invalid.field("/append/path", "where the new rows are, said once")
        appended = given.append_epoch(principal, name=dataset, path=place, reason=wanted.reason)
        return json_response(_shown(given, principal, appended))
    if wanted.refresh is not None:
        if not wanted.refresh:
            raise Invalid.field("/refresh", "true, or left out")
        if wanted.description is not None or wanted.status is not None:
            raise Invalid.field("/refresh", "a version is declared by itself: leave the rest out")
        declared = given.refresh_dataset(principal, name=dataset, reason=wanted.reason)
        return json_response(_shown(given, principal, declared))
    changed = given.datasets.alter(
        principal.name,
        dataset,
        description=wanted.description,
        closed=None if wanted.status is None else wanted.status == "closed",
        reason=wanted.reason,
    )
    return json_response(_shown(given, principal, changed))


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
    given: ServicesDep,
    principal: Admin,
    dataset: str,
    reason: Annotated[str | None, Query(max_length=1000, pattern=r"^[^\x00]*$")] = None,
) -> Response:
    """If nothing was ever charged or booked for its data, the name, its card and its prepared rows
    are removed, and the same data may be registered again, with another person or neighbouring
    relation. Otherwise the name closes, and what was spent stays."""
    key = request_key(request)
    outcome = given.withdraw_dataset(
        principal,
        name=dataset,
        reason=reason,
        request=_request_name(principal, key),
        body=hash_at(request, canonical(reason)),
    )
    reply = {"dataset": dataset, "status": outcome.value, "detail": DETAILS[outcome]}
    return json_response(reply)


def visible(given: Services, principal: Principal, name: str) -> Dataset:
    """The dataset, if this caller may know of it; otherwise as if there were none."""
    holders = principal.holders if principal.role is Role.ANALYST else None
    return given.datasets.find(name, holders)


def _shown(given: Services, principal: Principal, dataset: Dataset) -> dict[str, Any]:
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
        shown["fingerprint"] = given.datasets.fingerprint(dataset)
    return shown


def _source_shown(source: Source) -> dict[str, str]:
    if source.connection is None:
        return {"engine": source.engine, "path": source.path}
    named = "path" if "/" in source.path else "table"
    return {"engine": source.engine, "connection": source.connection, named: source.path}
