"""Facts about a source that registration reads; no question could be answered from them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Inspection:
    """Facts that registration reads from a source: no query could be answered from them."""

    digest: str  # SHA-256 of the source's bytes, to detect a changed file
    content: str  # hash of the rows as a multiset, equal in every engine, to recognise known data
    place: str  # resolved location of the source
    parts: tuple[str, ...] = ()  # locations of its files, if it is a folder
    # hash of whole rows, column names and each row's cell, if cells are declared
    celled: str | None = None


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """Names of a source's columns, and DuckDB's names of their types.

    `typed`: the source has types of its own; in a CSV file every column is text.
    """

    names: tuple[str, ...]
    types: tuple[str, ...]
    typed: bool


@dataclass(frozen=True, slots=True)
class EpochInspection:
    """Facts read from a file of rows that arrived later."""

    digest: str
    content: str
    place: str
    together: str  # content hash of the dataset with it, as if all rows were in one source
    empty: bool
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PrivateFiles:
    """Files that hold rows of datasets: their paths, and digests of all that ever did."""

    paths: tuple[str, ...] = ()
    digests: frozenset[str] = frozenset()
