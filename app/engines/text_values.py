"""Values of texts, read by one rule in every engine."""

from typing import Any

from sqlalchemy import Boolean, String, case, cast, false, func, true
from sqlalchemy.sql.elements import ColumnElement

from app.engines.sql.dialects import quoted


def boolean_from_text(raw: ColumnElement[Any]) -> ColumnElement[Any]:
    """Boolean value of texts and integers that mean yes or no."""
    text = func.lower(cast(raw, String()))
    yes, no = ["true", "t", "1", "yes", "1.0"], ["false", "f", "0", "no", "0.0"]
    is_yes, is_no = (text.in_([quoted(word) for word in words]) for words in (yes, no))
    return cast(case((is_yes, true()), (is_no, false())), Boolean())
