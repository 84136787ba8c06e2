"""Where a registered path leads: to a data file under an allowed root, or nowhere.

One text answers every refusal, so that registering a path tells nothing about files outside the
roots: not there, not allowed and not a data file look alike.
"""

import stat
from pathlib import Path

from app.errors import Invalid

SUFFIXES = (".csv", ".parquet")
# DuckDB reads these as patterns, and a pattern could name more than one file.
PATTERN_LETTERS = frozenset("*?[]{}")


def resolve_source(path: str, data_roots: tuple[Path, ...]) -> Path:
    """The real path of the source. Raises Invalid, always the same."""
    found = _find(path, data_roots)
    if found is None:
        raise Invalid.field("/source/path", "a .csv or .parquet file under a data root")
    return found


def _find(path: str, data_roots: tuple[Path, ...]) -> Path | None:
    if not path or "\0" in path or ".." in Path(path).parts:
        return None
    for root in data_roots:
        try:
            real_root = root.resolve(strict=True)
            # An absolute path replaces the root here, and is then held against it like any other.
            real = (real_root / path).resolve(strict=True)
            is_file = stat.S_ISREG(real.stat().st_mode)
        except (OSError, RuntimeError, ValueError):  # gone, a loop of links, not encodable
            continue
        inside = real.is_relative_to(real_root)
        plain = not PATTERN_LETTERS & set(str(real))
        if inside and is_file and plain and real.suffix in SUFFIXES:
            return real
    return None
