"""A hash of a file's rows that survives another order, other column names and another format.

Each column is hashed as a multiset of canonical texts (the sum of the MD5 of every value), and the
column hashes are sorted and hashed with the number of rows. So the same table as CSV or Parquet,
with rows or columns in another order, with columns renamed, gives the same fingerprint.

It catches the same data under another name. It cannot catch data that was changed on purpose or by
chance: one added, dropped or altered column, row or cell gives another fingerprint. And it errs on
one side only in this: columns with equal values paired into other rows look the same.
"""

import hashlib

import duckdb

from app.engines.content_hash import content_of, content_statement
from app.engines.files.rows import file_table
from app.engines.files.sources import SourceTable
from app.engines.sql.dialects import DUCKDB, written

_LOW = f"CAST({2**64 - 1} AS UHUGEINT)"


def contents_of(connection: duckdb.DuckDBPyConnection, *tables: SourceTable) -> tuple[str, str]:
    """What every engine knows the rows by, and what this one has always known them by."""
    statement = written(content_statement([file_table(table) for table in tables]), DUCKDB)
    row = connection.execute(statement.text, statement.parameters).fetchone()
    assert row is not None, "an aggregate without groups has one row"
    return content_of(row), content_hash(connection, *tables)


def content_hash(connection: duckdb.DuckDBPyConnection, *tables: SourceTable) -> str:
    """Of the rows of all the files together, which have columns of the same names. Reads each file
    once. Raises duckdb.Error for a file that cannot be read to its end."""
    positions = range(len(tables[0].names))
    relation = tables[0].relation if len(tables) == 1 else f"({_together(tables)})"
    texts = ", ".join(
        f"NULLIF(trim(CAST(k{i} AS VARCHAR)), '') AS x{i}, TRY_CAST(x{i} AS DOUBLE) AS d{i}"
        for i in positions
    )
    canonical = ", ".join(f"{_canonical(i)} AS t{i}" for i in positions)
    sums = ", ".join(
        f"count(t{i}), sum({_half(i, lower=True)}), sum({_half(i, lower=False)})" for i in positions
    )
    text = f"SELECT {texts} FROM {relation}"  # noqa: S608 - generated names
    text = f"SELECT {canonical} FROM ({text})"  # noqa: S608 - generated names
    text = f"SELECT count(*), {sums} FROM ({text})"  # noqa: S608 - generated names
    row = connection.execute(text, [table.paths for table in tables]).fetchone()
    assert row is not None, "an aggregate without groups has one row"
    row_count, *parts = row
    columns = sorted(
        f"{parts[3 * i]}:{parts[3 * i + 1] or 0}:{parts[3 * i + 2] or 0}" for i in positions
    )
    return hashlib.sha256("\n".join([f"rows:{row_count}", *columns]).encode()).hexdigest()


def _half(i: int, *, lower: bool) -> str:
    """md5_number_lower and md5_number_upper of a text, which take three times as long."""
    number = f"md5_number(t{i})"
    return f"CAST({number} >> 64 AS UBIGINT)" if lower else f"CAST({number} & {_LOW} AS UBIGINT)"


def _together(tables: tuple[SourceTable, ...]) -> str:
    """All rows, in the columns of the first file, by name; as texts, for types may differ."""
    parts = []
    for table in tables:
        places = [table.position(name) for name in tables[0].names]
        columns = ", ".join(f"CAST(k{place} AS VARCHAR) AS k{i}" for i, place in enumerate(places))
        parts.append(f"SELECT {columns} FROM {table.relation}")  # noqa: S608 - generated names
    return " UNION ALL ".join(parts)


def _canonical(i: int) -> str:
    """One text for 1, 1.0 and '1.00'; one for a day, with or without its midnight."""
    number = f"CASE WHEN d{i} = 0 THEN '0' ELSE CAST(d{i} AS VARCHAR) END"
    moment = f"CAST(TRY_CAST(x{i} AS TIMESTAMP) AS VARCHAR)"
    truth = f"CASE WHEN lower(x{i}) IN ('true', 'false') THEN lower(x{i}) ELSE x{i} END"
    return f"CASE WHEN d{i} IS NOT NULL THEN {number} ELSE coalesce({moment}, {truth}) END"
