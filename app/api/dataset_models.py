"""Wire models of datasets: cards, sources, epochs and what is shown of them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from app.api.http.wire import (
    Reason,
    WireRequest,
)
from app.data.card import Card, Cells, Neighbours, Person, Source
from app.data.columns import Column
from app.errors import Invalid

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
    files, in one of the folders of BURSAR_DATA_ROOTS. `postgresql` and `spark`: a `table` behind a
    `connection` that the operator named. For Spark also the `path` of a folder of Parquet files."""

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
        location = self.table or self.path
        if location is None or (self.table and self.path):
            wanted = {"duckdb": "path", "postgresql": "table", "spark": "table"}[self.engine]
            raise Invalid.field(f"/source/{wanted}", "where the rows are, stated once")
        return Source(self.engine, location, self.connection)


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
    """Changes of a dataset: its description, or whether questions are answered. Rows change in a
    request of their own. `append` adds a file or table as the next epoch. `refresh` declares a new
    version of a source that has changed since it was registered."""

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


class DraftRequest(WireRequest):
    """The source of a dataset that is still to be registered."""

    source: SourceRequest


class DraftResponse(BaseModel):
    """A draft of a card, with null where somebody must decide. `missing` says what these places
    need. `left_out` names columns whose type no card can declare."""

    card: dict[str, Any]
    missing: list[str]
    left_out: list[str]


class WithdrawResponse(BaseModel):
    """Outcome of the withdrawal; `detail` explains it in a sentence."""

    dataset: str
    status: Literal["withdrawn", "closed"]
    detail: str


class SampleResponse(BaseModel):
    """Synthetic rows: drawn from the card, not from the data."""

    made_up: Literal[True]
    rows: list[dict[str, Any]]
