"""Which fields the schema declares at a place of a body, so that a misspelt one can be named.

The JSON schema is walked beside the body. Where several models are possible, a tag in the body
decides; without one, the fields of all of them are known.
"""

from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter

Path = tuple[str | int, ...]  # from the top of the body, as JSON has it
Schema = dict[str, Any]
DEPTH_MAX = 20  # of unions in unions


def fields_at(adapter: TypeAdapter[Any], path: Path, data: Any) -> list[str]:
    """The names of the fields that the object at this path may have."""
    whole = _schema(adapter)
    here, possible = data, _objects(whole, whole, data)
    for part in path:
        here = here[part]
        found = [_below(each, part) for each in possible]
        possible = [
            each for below in found if below is not None for each in _objects(below, whole, here)
        ]
    return list(dict.fromkeys(name for each in possible for name in each.get("properties", {})))


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
    """The schemas that this one may stand for, without references and unions."""
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
