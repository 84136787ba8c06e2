"""Where a registered path leads: to a data file, or a folder of Parquet files, under an allowed
root, or nowhere.

One text answers every refusal, so that registering a path tells nothing about files outside the
roots: not there, not allowed and not a data file look alike.
"""

import os
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path

from app.data.card import Dataset
from app.errors import EngineUnavailable, Invalid, SourceChanged

SUFFIXES = (".csv", ".parquet")
# DuckDB reads these as patterns, and a pattern could name more than one file.
PATTERN_LETTERS = frozenset("*?[]{}")
FOLDER_FILES_MAX = 4096
WANTED = (
    "a .csv or .parquet file, or a folder of .parquet files without subfolders, under a data root"
)


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """Where the rows of one table really are: in a file, or in the files of a folder."""

    place: Path
    files: tuple[Path, ...]
    names: tuple[str, ...] = ()  # of a folder's files, as it lists them; a file alone has none
    # The place as it was named, links and all; however it was, it is the same source.
    asked: Path | None = field(default=None, compare=False)

    @property
    def is_folder(self) -> bool:
        return bool(self.names)


def resolve_source(path: str, data_roots: tuple[Path, ...]) -> SourceFiles:
    """The real files of the source. Raises Invalid, always the same."""
    found = _find(path, data_roots)
    if found is None:
        raise Invalid.field("/source/path", WANTED)
    return found


def registered_sources(dataset: Dataset, data_roots: tuple[Path, ...]) -> list[SourceFiles]:
    """Of a dataset's source, and of the epochs after it, which were there when it was registered.
    Raises SourceChanged if something else is there, EngineUnavailable if nothing is."""
    found = []
    for path in dataset.paths:
        source = _find(path, data_roots)
        if source is None:
            if any(os.path.lexists(root / path) for root in data_roots):
                raise SourceChanged("The source is not what was registered.")
            raise EngineUnavailable("The source is gone.")
        found.append(source)
    return found


def folder_names(folder: Path) -> tuple[str, ...]:
    """The folder's Parquet files in order; those that begin with . or _ do not count, as for Spark.
    None are told where there is a subfolder, whose rows would silently be left out."""
    names = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                return ()
            if entry.name.endswith(".parquet") and not entry.name.startswith((".", "_")):
                names.append(entry.name)
    return tuple(sorted(names))


def _find(path: str, data_roots: tuple[Path, ...]) -> SourceFiles | None:
    if not path or "\0" in path or ".." in Path(path).parts:
        return None
    for root in data_roots:
        try:
            real_root = root.resolve(strict=True)
            # An absolute path replaces the root here, and is then held against it like any other.
            asked = root / path
            real = (real_root / path).resolve(strict=True)
            if not real.is_relative_to(real_root):
                continue
            found = _folder(real, data_roots) if real.is_dir() else _file(real)
        except (OSError, RuntimeError, ValueError):  # gone, a loop of links, not encodable
            continue
        if found is not None and real != real_root:
            return replace(found, asked=asked)
    return None


def _file(real: Path) -> SourceFiles | None:
    return SourceFiles(real, (real,)) if _is_data(real, SUFFIXES) else None


def _folder(real: Path, data_roots: tuple[Path, ...]) -> SourceFiles | None:
    names = folder_names(real)
    if not 0 < len(names) <= FOLDER_FILES_MAX:
        return None
    files = tuple((real / name).resolve(strict=True) for name in names)
    if len(set(files)) != len(files):  # two links to one file: each of its rows would count twice
        return None
    if all(_is_data(file, (".parquet",)) and _is_inside(file, data_roots) for file in files):
        return SourceFiles(real, files, names)
    return None


def _is_data(real: Path, suffixes: tuple[str, ...]) -> bool:
    plain = not PATTERN_LETTERS & set(str(real))
    return plain and real.suffix in suffixes and stat.S_ISREG(real.stat().st_mode)


def _is_inside(real: Path, data_roots: tuple[Path, ...]) -> bool:
    """Roots may be absent; a link may lead from one into another."""
    return any(real.is_relative_to(root.resolve()) for root in data_roots)
