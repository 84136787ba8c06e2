"""Fields that the schema declares at a path of a body, to suggest one for a misspelt name.

The JSON schema is walked along the body. Where several models are possible, a tag in the body
decides; without one, the fields of all of them count.
"""

from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter

Path = tuple[str | int, ...]  # from the top of the JSON body
Schema = dict[str, Any]
DEPTH_MAX = 20  # of nested unions


def fields_at(adapter: TypeAdapter[Any], path: Path, data: Any) -> list[str]:
    """Names of the fields that the object at this path may have."""
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
