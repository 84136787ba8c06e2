"""Questions sent as SQL: translated on arrival; errors are mapped back to the SQL text."""

from typing import Any

from app.api.http.json_body import ErrorTranslator, unchanged
from app.errors import FieldError, Invalid

QUESTIONS = "/questions"


def translated(sent: Any) -> tuple[Any, ErrorTranslator]:
    """A body, or a list of bodies, with each `sql` replaced by its question.

    The list may also be the member `questions` of an object."""
    if isinstance(sent, dict) and isinstance(sent.get("questions"), list):
        return _translated_member(sent)
    many = isinstance(sent, list)
    bodies = sent if isinstance(sent, list) else [sent]
    if not any(isinstance(item, dict) and "sql" in item for item in bodies):
        return sent, unchanged
    from app.planning.sql.translate import (  # loads the parser only when it is needed
        Translation,
        translate,
    )

    done: dict[str, Translation] = {}
    result = []
    for i, item in enumerate(bodies):
        if isinstance(item, dict) and "sql" in item:
            prefix = f"/{i}" if many else ""
            try:
                done[prefix] = translate(item)
            except Invalid as error:
                raise _moved(error, prefix) from None
            item = done[prefix].body
        result.append(item)

    def translated(error: Invalid) -> Invalid:
        fields = [_translated(item, done, many=many) for item in error.fields]
        return _of(type(error), fields, error)

    return (result if many else result[0]), translated


def _translated_member(sent: dict[str, Any]) -> tuple[Any, ErrorTranslator]:
    try:
        inner, translate_error = translated(sent["questions"])
    except Invalid as error:
        raise _moved(error, QUESTIONS) from None

    def outer(error: Invalid) -> Invalid:
        if not all(item.pointer.startswith(f"{QUESTIONS}/") for item in error.fields):
            return error
        shorter = [
            FieldError(item.pointer.removeprefix(QUESTIONS), item.rule) for item in error.fields
        ]
        return _moved(translate_error(_of(type(error), shorter, error)), QUESTIONS)

    return {**sent, "questions": inner}, outer


def _translated(error: FieldError, done: dict[str, Any], *, many: bool) -> FieldError:
    index = error.pointer.split("/")[1] if many and error.pointer else ""
    prefix = f"/{index}" if many else ""
    if prefix not in done:
        return error
    found = done[prefix].translated(FieldError(error.pointer.removeprefix(prefix), error.rule))
    return FieldError(f"{prefix}{found.pointer}", found.rule)


def _moved(error: Invalid, prefix: str) -> Invalid:
    moved = [FieldError(f"{prefix}{each.pointer}", each.rule) for each in error.fields]
    return _of(type(error), moved, error)


def _of(kind: type[Invalid], fields: list[FieldError], error: Invalid) -> Invalid:
    if not fields:
        return error
    return kind(f"{fields[0].pointer or 'The body'}: {fields[0].rule}", *fields, **error.members)
