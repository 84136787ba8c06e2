"""Read YAML as JSON would be read, and remember the line of every field.

Only plain data: no tags, no aliases, no key twice. Plain words mean what JSON means by them: `no`
and `2020-01-01` are texts, and `1e-6` is a number, kept with its exact text.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from app.api.http.json_body import DIGITS_MAX, ExactFloat
from app.cli.exits import FIELDS_SHOWN, Failure
from app.errors import AppError, Invalid

BYTES_MAX = 4 << 20
DEPTH_MAX = 60
TEXT = "tag:yaml.org,2002:str"
COLLECTIONS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
_WHOLE = re.compile(r"[-+]?[0-9]+")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


class _PlainLoader(yaml.SafeLoader):  # type: ignore[misc]  # it has no types
    """Every plain word is a text; `_scalar` decides what it means."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # as in its parent


@dataclass(slots=True)
class SourceLines:
    """A file's data, and where each part of it is."""

    path: Path
    data: Any = None
    lines: dict[str, int] = field(default_factory=dict)  # by JSON pointer

    def wrong(self, pointer: str, rule: str) -> Failure:
        return Failure(self._located(pointer, rule))

    @contextmanager
    def at(self, pointer: str) -> Iterator[None]:
        """Add file and line to errors about the item at this pointer."""
        try:
            yield
        except Invalid as error:
            fields = [(f"{pointer}{each.pointer}", each.rule) for each in error.fields]
            raise self._failure(fields or [(pointer, error.detail)]) from None
        except AppError as error:
            raise self.wrong(pointer, error.detail) from None

    def _failure(self, fields: list[tuple[str, str]]) -> Failure:
        first, *more = [self._located(pointer, rule) for pointer, rule in fields]
        left = len(more) - FIELDS_SHOWN
        more[FIELDS_SHOWN:] = [f"and {left} more"] if left > 0 else []
        return Failure(first, "\n".join(more))

    def _located(self, pointer: str, rule: str) -> str:
        there = pointer
        while there and there not in self.lines:
            there = there.rpartition("/")[0]
        return f"{self.path}:{self.lines.get(there, 1)}: {pointer or 'the file'}: {rule}"


def read_lines(path: Path) -> SourceLines:
    raw = path.read_bytes()
    if len(raw) > BYTES_MAX:
        raise Failure(f"{path}: at most {BYTES_MAX} bytes are read.")
    read = SourceLines(path)
    try:
        root = yaml.compose(raw.decode("utf-8"), Loader=_PlainLoader)  # a safe loader
    except UnicodeDecodeError:
        raise Failure(f"{path}: it is not UTF-8.") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise Failure(f"{path}:{line}: it is not valid YAML: {error.problem}.") from None
    except (yaml.YAMLError, RecursionError):
        raise Failure(f"{path}: it is not valid YAML.") from None
    read.data = {} if root is None else _converted(root, "", read, set(), 0)
    return read


def _converted(node: Any, pointer: str, read: SourceLines, seen: set[int], depth: int) -> Any:
    read.lines.setdefault(pointer, node.start_mark.line + 1)
    if id(node) in seen:
        raise read.wrong(pointer, "aliases are not read: write it out")
    seen.add(id(node))
    if depth > DEPTH_MAX:
        raise read.wrong(pointer, "it is nested too deeply")
    if node.tag not in (TEXT, *COLLECTIONS):
        raise read.wrong(pointer, "tags are not read: leave it out")
    match node:
        case yaml.MappingNode():
            return _mapping(node, pointer, read, seen, depth)
        case yaml.SequenceNode():
            return [
                _converted(item, f"{pointer}/{index}", read, seen, depth + 1)
                for index, item in enumerate(node.value)
            ]
    return _scalar(node, pointer, read)


def _mapping(
    node: Any, pointer: str, read: SourceLines, seen: set[int], depth: int
) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key, value in node.value:
        name = key.value
        if not isinstance(key, yaml.ScalarNode) or not isinstance(name, str):
            raise read.wrong(pointer, "the name of a field is a text")
        below = f"{pointer}/{name[:60].replace('~', '~0').replace('/', '~1')}"
        read.lines[below] = key.start_mark.line + 1
        if name in data:
            raise read.wrong(below, "this field is there twice")
        data[name] = _converted(value, below, read, seen, depth + 1)
    return data


def _scalar(node: Any, pointer: str, read: SourceLines) -> Any:
    text: str = node.value
    if "\x00" in text:
        raise read.wrong(pointer, "a text without a NUL character")
    if node.style is not None:  # quoted, or a block
        return text
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > DIGITS_MAX or not _NUMBER.fullmatch(text):
        return text
    if _WHOLE.fullmatch(text):
        return int(text)
    number = ExactFloat(text)
    if number in (float("inf"), float("-inf")):
        raise read.wrong(pointer, "a number that is not too large")
    number.text = text
    return number
