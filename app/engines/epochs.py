"""How many rows of each epoch meet a condition, as one SQL statement."""

from typing import Any

from sqlalchemy import Integer, column, func, literal_column, select, table

from app.engines.conditions import condition_sql
from app.engines.layout import EPOCH, TABLE, Layout
from app.engines.sql import DuckDBDialect
from app.queries.statistics import Condition


def render_epochs(
    layout: Layout, where: Condition | None, *, told: bool
) -> tuple[str, tuple[Any, ...]]:
    """The text and its parameters; epochs without such rows do not come back. A version of one
    epoch does not tell it."""
    epoch = column(EPOCH, Integer()) if told else literal_column("1", Integer())
    statement = select(epoch.label("place"), func.count()).select_from(table(TABLE))
    if where is not None:
        statement = statement.where(condition_sql(where, layout))
    statement = statement.group_by(literal_column("1"))
    made = statement.compile(dialect=DuckDBDialect(), compile_kwargs={"render_postcompile": True})
    return str(made), tuple(made.params[name] for name in made.positiontup or ())
