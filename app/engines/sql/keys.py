"""A KeyTally as one SQL statement: a row for each key that rows have, in no order.

Nothing is left out by how large a count is: that would be told by what is missing.
"""

from typing import Any

from sqlalchemy import Integer, and_, column, distinct, func, literal_column, select
from sqlalchemy.sql.elements import ColumnElement

from app.engines.sql.conditions import condition_sql, stored_column
from app.engines.sql.dialects import constant
from app.engines.sql.layout import PERSON, Layout
from app.engines.sql.tally_statement import Rendered, compiled, grouped_rows
from app.queries.tally import KeyBatch, KeyCountsRequest

BATCH = 20_000


def render_keys(layout: Layout, wanted: KeyCountsRequest) -> Rendered:
    """Numbers of the public groups, the text, and how many."""
    tally = wanted.tally
    rows, codes, conditions, places = grouped_rows(layout, tally, layout.rows)
    text = stored_column(layout, wanted.column)
    conditions.append(text.is_not(None))
    if tally.where is not None:
        conditions.append(condition_sql(tally.where, layout))
    many: ColumnElement[int] = (
        func.count(distinct(column(PERSON))) if wanted.persons else func.count()
    )
    group = codes or [literal_column("0", Integer()).label("g0")]  # all are in the one group
    statement = select(*group, text.label("text"), many).select_from(rows).where(and_(*conditions))
    # A constant is not grouped by: it is the same of all.
    keys = [constant(i + 1) for i in range(len(group) + 1)][0 if codes else 1 :]
    return compiled(layout, statement.group_by(*keys), tally, places)


def key_batch(rows: list[tuple[Any, ...]], rendered: Rendered) -> KeyBatch:
    """Rows of the result as keys; those in no public group that was asked for are left out."""
    if [type(each) for each in rows[0][-2:]] != [str, int]:  # a column is of one type
        raise TypeError("a key is a text and a whole number")
    if not rendered.group_counts:  # as they are: there may be millions
        return rows
    places = {code: rendered.place(code) for code in {row[:-2] for row in rows}}
    found = ((places[row[:-2]], row[-2], row[-1]) for row in rows)
    return [(place, text, count) for place, text, count in found if place is not None]
