"""A KeyCountsRequest as one SQL statement: a row for each key that occurs, in no order.

No key is left out because of its count: its absence would reveal the count.
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


def render_keys(layout: Layout, request: KeyCountsRequest) -> Rendered:
    """Statement for the codes of the public groups, the text, and its count."""
    tally = request.tally
    rows, codes, conditions, places = grouped_rows(layout, tally, layout.rows)
    text = stored_column(layout, request.column)
    conditions.append(text.is_not(None))
    if tally.where is not None:
        conditions.append(condition_sql(tally.where, layout))
    many: ColumnElement[int] = (
        func.count(distinct(column(PERSON))) if request.persons else func.count()
    )
    group = codes or [literal_column("0", Integer()).label("g0")]  # all rows are in one group
    statement = select(*group, text.label("text"), many).select_from(rows).where(and_(*conditions))
    # Do not group by a constant: it is the same for all rows.
    keys = [constant(i + 1) for i in range(len(group) + 1)][0 if codes else 1 :]
    return compiled(layout, statement.group_by(*keys), tally, places)


def key_batch(rows: list[tuple[Any, ...]], rendered: Rendered) -> KeyBatch:
    """Rows of the result as keys; those outside the requested public groups are left out."""
    if [type(each) for each in rows[0][-2:]] != [str, int]:  # all rows have these types
        raise TypeError("a key must be a text and an integer")
    if not rendered.group_counts:  # without a copy: there may be millions
        return rows
    places = {code: rendered.place(code) for code in {row[:-2] for row in rows}}
    keys = ((places[row[:-2]], row[-2], row[-1]) for row in rows)
    return [(index, text, count) for index, text, count in keys if index is not None]
