"""Epochs: check that a file fits the earlier ones, and count the rows of each by a condition."""

import duckdb
from sqlalchemy import Integer, column, func, select

from app.data.card import Card, ColumnPerson
from app.engines.card_fit import check_fit
from app.engines.files.sources import SourceTable
from app.engines.sql.conditions import condition_sql
from app.engines.sql.dialects import Statement, constant
from app.engines.sql.layout import EPOCH, Layout
from app.errors import Invalid
from app.queries.tally import Condition

POINTER = "/append/path"
OTHER = "a file with the columns of the dataset's first file, of types that fit its card"


def check_epoch(card: Card, first: SourceTable, table: SourceTable) -> None:
    """Check names and types alone. Persons must have one type: 1 and "01" would be two."""
    fits = sorted(first.names) == sorted(table.names) and len(set(table.names)) == len(table.names)
    try:
        check_fit(card, table)
    except Invalid:
        fits = False
    if fits and isinstance(card.person, ColumnPerson):
        places = [(each, each.position(card.person.column)) for each in (first, table)]
        types = [each.types[place] for each, place in places if place is not None]
        fits = types[0] == types[-1]
    if not fits:
        raise Invalid.field(POINTER, OTHER)


def is_empty(connection: duckdb.DuckDBPyConnection, table: SourceTable) -> bool:
    text = f"SELECT count(*) FROM {table.relation}"  # noqa: S608 - generated names
    row = connection.execute(text, [table.paths]).fetchone()
    return row is None or row[0] == 0


def render_epochs(layout: Layout, where: Condition | None, *, has_epochs: bool) -> Statement:
    """Statement for the rows of each epoch; epochs without rows are absent.

    `has_epochs`: the version stores epoch numbers; a version of one epoch does not.
    """
    epoch = column(EPOCH, Integer()) if has_epochs else constant(1)
    statement = select(epoch.label("place"), func.count()).select_from(layout.rows)
    if where is not None:
        statement = statement.where(condition_sql(where, layout))
    return layout.written(statement.group_by(constant(1)))
