"""Preview request: a query with an assumed number of rows."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from app.data.card import ROWS_MAX
from app.planning.request import Question, SqlQuestion


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Assumption(_Frozen):
    """The analyst's guess about the selected rows; public, and never compared with the data.

    `rows` is the number of rows, with groups of each group, with `per_person` of persons."""

    rows: Annotated[int, Field(ge=1, le=ROWS_MAX)]


class AssumedQuestion(Question):
    """A query, and what to assume about its rows where the error depends on them."""

    assume: Assumption | None = None

    @property
    def assumed_rows(self) -> int | None:
        return None if self.assume is None else self.assume.rows


class AssumedSqlQuestion(SqlQuestion):
    """The same in SQL."""

    assume: Assumption | None = None
