"""Content hash of a file's rows, independent of their order, the format and the column names.

It finds the same data under another name. It does not find changed data: one added, dropped or
altered column, row or cell gives another hash. Equal columns whose values are paired into other
rows give the same hash.
"""

import duckdb

from app.engines.content_hash import content_of, content_statement
from app.engines.files.rows import file_table
from app.engines.files.sources import SourceTable
from app.engines.sql.dialects import DUCKDB, written


def content_hash(connection: duckdb.DuckDBPyConnection, *tables: SourceTable) -> str:
    """Hash the rows of all files together; their columns have the same names. Reads each file once.

    Raises duckdb.Error for a file that cannot be read to its end.
    """
    statement = written(content_statement([file_table(table) for table in tables]), DUCKDB)
    row = connection.execute(statement.text, statement.parameters).fetchone()
    assert row is not None, "an aggregate without groups has one row"
    return content_of(row)
