"""A StepTally as one SQL statement: how many rows are in each stretch of a column's steps.

Only stretches that hold a row come back, in order. Steps are never below `low` here, so that the
shift is of no negative number.
"""

from typing import Any

from sqlalchemy import BigInteger, and_, bindparam, cast, column, func, or_, select

from app.engines.sql.conditions import condition_sql
from app.engines.sql.dialects import Shifted, Statement, constant
from app.engines.sql.layout import Layout
from app.queries.tally import StepHistogram


def render_steps(layout: Layout, wanted: StepHistogram) -> Statement:
    steps = column(layout.steps(wanted.column), BigInteger())
    (first, _), (_, last) = wanted.ranges[0], wanted.ranges[-1]
    inside = [steps >= _whole(first), steps <= _whole(last)]  # by which whole blocks are skipped
    if len(wanted.ranges) > 1:
        within = (and_(steps >= _whole(low), steps <= _whole(high)) for low, high in wanted.ranges)
        inside.append(or_(*within))
    if wanted.where is not None:
        inside.append(condition_sql(wanted.where, layout))
    above = cast(steps - _whole(wanted.low), BigInteger())
    place = cast(Shifted(above, constant(wanted.shift)), BigInteger()).label("place")
    statement = (
        select(place, func.count())
        .select_from(layout.rows)
        .where(and_(*inside))
        .group_by(constant(1))
        .order_by(constant(1))
    )
    return layout.written(statement)


def _whole(number: int) -> Any:
    return cast(bindparam(None, number, unique=True), BigInteger())
