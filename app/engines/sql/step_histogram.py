"""A StepHistogram as one SQL statement: the number of rows in each bin of 2^shift steps.

Only rows within one of the histogram's ranges count, and only bins with a row are returned, in
order. No range begins below `low`, so the shift is never applied to a negative number.
"""

from typing import Any

from sqlalchemy import BigInteger, and_, bindparam, cast, column, func, or_, select

from app.engines.sql.conditions import condition_sql
from app.engines.sql.dialects import Shifted, Statement, constant
from app.engines.sql.layout import Layout
from app.queries.tally import StepHistogram


def render_steps(layout: Layout, histogram: StepHistogram) -> Statement:
    steps = column(layout.steps(histogram.column), BigInteger())
    (first, _), (_, last) = histogram.ranges[0], histogram.ranges[-1]
    inside = [steps >= _whole(first), steps <= _whole(last)]  # lets the engine skip whole blocks
    if len(histogram.ranges) > 1:
        within = (
            and_(steps >= _whole(low), steps <= _whole(high)) for low, high in histogram.ranges
        )
        inside.append(or_(*within))
    if histogram.where is not None:
        inside.append(condition_sql(histogram.where, layout))
    above = cast(steps - _whole(histogram.low), BigInteger())
    bin_index = cast(Shifted(above, constant(histogram.shift)), BigInteger()).label("place")
    statement = (
        select(bin_index, func.count())
        .select_from(layout.rows)
        .where(and_(*inside))
        .group_by(constant(1))
        .order_by(constant(1))
    )
    return layout.written(statement)


def _whole(number: int) -> Any:
    return cast(bindparam(None, number, unique=True), BigInteger())
