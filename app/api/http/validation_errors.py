"""Validation errors of a body or of parameters: where, which rule, never the value.

For a misspelt field or kind the nearest declared one is suggested.
"""

import re
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import ErrorDetails

from app.errors import FieldError, Invalid
from app.nearest import did_you_mean

Path = tuple[str | int, ...]  # from the top of the JSON body
Schema = dict[str, Any]
DEPTH_MAX = 20  # of nested unions
NAME_SHOWN_MAX = 60
FIELDS_MAX = 50
_OBJECTS = {"model_type", "model_attributes_type", "dataclass_type", "dict_type"}
_LISTS = {"tuple_type", "list_type", "set_type", "frozen_set_type"}


def invalid(
    errors: list[ErrorDetails], data: Any, adapter: TypeAdapter[Any] | None = None
) -> Invalid:
    """Error for the caller. `adapter`: validator of the body, which knows the names of the
    fields.
    """
    rules: dict[str, list[str]] = {}
    located = [(error, _path(error, data)) for error in errors[:FIELDS_MAX]]
    for error, path in located:
        if _bogus(error, path, data) and len(located) > 1:
            continue
        pointer = "".join(f"/{_escaped(part)}" for part in path)
        rule = _rule(error, path, data, adapter)
        if rule not in rules.setdefault(pointer, []):
            rules[pointer].append(rule)
    fields = [FieldError(pointer, "; or ".join(each)) for pointer, each in rules.items()]
    first = fields[0]
    return Invalid(f"{first.pointer or 'The body'}: {first.rule}", *fields)


def _path(error: ErrorDetails, data: Any) -> Path:
    """Path in the body, without the names of union members that pydantic adds.

    This also holds where a field has the name of its object's kind.
    """
    parts: list[str | int] = []
    here = data
    location = error["loc"]
    tagged = None  # the object whose kind was skipped
    for index, part in enumerate(location):
        last = index == len(location) - 1
        if isinstance(here, dict) and here is not tagged and here.get("kind") == part and not last:
            tagged = here
            continue
        inside = isinstance(part, int) and isinstance(here, list) and part < len(here)
        if inside or (isinstance(here, dict) and part in here):
            here = here[part]
        elif not (last and error["type"] == "missing"):
            continue
        parts.append(part)
    if error["type"] == "union_tag_invalid":  # the name of the kind is wrong
        parts.append(str(error["ctx"]["discriminator"]).strip("'"))
    return tuple(parts)


def _escaped(part: str | int) -> str:
    return str(part)[:NAME_SHOWN_MAX].replace("~", "~0").replace("/", "~1")


def _sent(path: Path, data: Any) -> Any:
    here = data
    for part in path:
        inside = isinstance(here, dict) and part in here
        if not inside and not (isinstance(here, list) and isinstance(part, int)):
            return None
        here = here[part]
    return here


def _bogus(error: ErrorDetails, path: Path, data: Any) -> bool:
    """True for a list called too short only because its items are wrong, which is reported too."""
    sent = _sent(path, data)
    return (
        error["type"] == "too_short"
        and isinstance(sent, list)
        and len(sent) >= error["ctx"]["min_length"]
    )


def _rule(error: ErrorDetails, path: Path, data: Any, adapter: TypeAdapter[Any] | None) -> str:
    match error["type"]:
        case "missing":
            return "this field is needed"
        case "extra_forbidden":
            known = [] if adapter is None else fields_at(adapter, path[:-1], data)
            return f"there is no such field{did_you_mean(path[-1] if path else None, known)}"
        case "union_tag_invalid":
            tags = str(error["ctx"]["expected_tags"])
            return f"one of {tags}{did_you_mean(error['ctx']['tag'], _quoted(tags))}"
        case "union_tag_not_found":
            return f"an object with {error['ctx']['discriminator']}"
        case "too_short":
            return f"at least {error['ctx']['min_length']} of them"
        case "too_long":
            return f"at most {error['ctx']['max_length']} of them"
        case kind if kind in _OBJECTS:
            return "an object"
        case kind if kind in _LISTS:
            return "a list"
        case "value_error":
            return str(error["ctx"]["error"])
        case _:
            message = error["msg"]
            near = ""
            if error["type"] in ("literal_error", "enum"):
                near = did_you_mean(_sent(path, data), _quoted(str(error["ctx"]["expected"])))
            return message[0].lower() + message[1:] + near


def _quoted(texts: str) -> list[str]:
    return re.findall(r"'([^']+)'", texts)


def fields_at(adapter: TypeAdapter[Any], path: Path, data: Any) -> list[str]:
    """Names of the fields that the object at this path may have, to suggest one of them.

    The JSON schema is walked along the body. Where several models are possible, a tag in the body
    decides; without one, the fields of all of them count.
    """
    whole = _schema(adapter)
    here, possible = data, _objects(whole, whole, data)
    for part in path:
        here = here[part]
        below_possible = [_below(schema, part) for schema in possible]
        possible = [
            schema
            for below in below_possible
            if below is not None
            for schema in _objects(below, whole, here)
        ]
    return list(dict.fromkeys(name for schema in possible for name in schema.get("properties", {})))


@lru_cache(maxsize=64)
def _schema(adapter: TypeAdapter[Any]) -> Schema:
    return adapter.json_schema(by_alias=True)


def _below(schema: Schema, part: str | int) -> Schema | None:
    if isinstance(part, int):
        items = schema.get("items")
        return items if isinstance(items, dict) else None
    found = schema.get("properties", {}).get(part)
    return found if isinstance(found, dict) else None


def _objects(schema: Schema, whole: Schema, sent: Any, depth: int = 0) -> list[Schema]:
    """Alternatives of this schema, with references and unions resolved."""
    if depth > DEPTH_MAX:
        return []
    if "$ref" in schema:
        named = whole["$defs"][schema["$ref"].rpartition("/")[2]]
        return _objects(named, whole, sent, depth + 1)
    mapping = schema.get("discriminator", {}).get("mapping")
    if mapping and isinstance(sent, dict):
        tag = sent.get(schema["discriminator"]["propertyName"])
        if isinstance(tag, str) and tag in mapping:
            return _objects({"$ref": mapping[tag]}, whole, sent, depth + 1)
    choices = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())]
    if choices:
        return [each for choice in choices for each in _objects(choice, whole, sent, depth + 1)]
    return [schema]
