"""Questions sent as SQL: translated as soon as they are read; what is wrong is told of the text."""

from typing import Any

from app.api.http.json_body import ErrorTranslator, unchanged
from app.errors import FieldError, Invalid


def translated(sent: Any) -> tuple[Any, ErrorTranslator]:
    """A body, or a list of them, with each `sql` as the question that it asks."""
    many = isinstance(sent, list)
    bodies = sent if isinstance(sent, list) else [sent]
    if not any(isinstance(each, dict) and "sql" in each for each in bodies):
        return sent, unchanged
    from app.planning.sql.translate import (  # its parser is loaded when it is needed
        Translation,
        translate,
    )

    done: dict[str, Translation] = {}
    result = []
    for i, each in enumerate(bodies):
        if isinstance(each, dict) and "sql" in each:
            prefix = f"/{i}" if many else ""
            try:
                done[prefix] = translate(each)
            except Invalid as error:
                raise _moved(error, prefix) from None
            each = done[prefix].body
        result.append(each)

    def told(error: Invalid) -> Invalid:
        return _of(type(error), [_told(each, done, many=many) for each in error.fields], error)

    return (result if many else result[0]), told


def _told(error: FieldError, done: dict[str, Any], *, many: bool) -> FieldError:
    index = error.pointer.split("/")[1] if many and error.pointer else ""
    prefix = f"/{index}" if many else ""
    if prefix not in done:
        return error
    found = done[prefix].told(FieldError(error.pointer.removeprefix(prefix), error.rule))
    return FieldError(f"{prefix}{found.pointer}", found.rule)


def _moved(error: Invalid, prefix: str) -> Invalid:
    moved = [FieldError(f"{prefix}{each.pointer}", each.rule) for each in error.fields]
    return _of(type(error), moved, error)


def _of(kind: type[Invalid], fields: list[FieldError], error: Invalid) -> Invalid:
    if not fields:
        return error
    return kind(f"{fields[0].pointer or 'The body'}: {fields[0].rule}", *fields, **error.members)
