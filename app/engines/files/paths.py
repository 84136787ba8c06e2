"""Resolve a registered path to a data file or a folder of Parquet files under an allowed root.

Every refusal has the same text, so that registering a path reveals nothing about files outside the
roots: missing, forbidden and not a data file look alike.
"""

import os
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path

from app.data.card import Dataset
from app.errors import EngineUnavailable, Invalid, SourceChanged

SUFFIXES = (".csv", ".parquet")
# DuckDB reads these letters as patterns, and a pattern could match more than one file.
PATTERN_LETTERS = frozenset("*?[]{}")
FOLDER_FILES_MAX = 4096
WANTED = (
    "a .csv or .parquet file, or a folder of .parquet files without subfolders, under a data root"
)


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """Real location of the rows of one table: a file, or the files of a folder."""

    place: Path
    files: tuple[Path, ...]
    names: tuple[str, ...] = ()  # names of a folder's files; empty for a single file
    # The path as registered, with its links. It does not count in comparisons of sources.
    asked: Path | None = field(default=None, compare=False)

    @property
    def is_folder(self) -> bool:
        return bool(self.names)


def resolve_source(path: str, data_roots: tuple[Path, ...]) -> SourceFiles:
    """The real files of the source. Raises Invalid, always with the same text."""
    found = _find(path, data_roots)
    if found is None:
        raise Invalid.field("/source/path", WANTED)
    return found


def registered_sources(dataset: Dataset, data_roots: tuple[Path, ...]) -> list[SourceFiles]:
    """Real files of a dataset's source and of its epochs.

    Raises SourceChanged if something else is there now, EngineUnavailable if nothing is.
    """
    sources = []
    for path in dataset.paths:
        source = _find(path, data_roots)
        if source is None:
            if any(os.path.lexists(root / path) for root in data_roots):
                raise SourceChanged("The source is not what was registered.")
            raise EngineUnavailable("The source is gone.")
        sources.append(source)
    return sources


def folder_names(folder: Path) -> tuple[str, ...]:
    """Names of the folder's Parquet files, sorted; names that begin with . or _ are skipped.

    Spark skips the same names. Empty if there is a subfolder, because its rows would silently be
    left out.
    """
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
            # An absolute path replaces the root here, and is then checked like any other.
            registered_path = root / path
            real = (real_root / path).resolve(strict=True)
            if not real.is_relative_to(real_root):
                continue
            source = _folder(real, data_roots) if real.is_dir() else _file(real)
        except (OSError, RuntimeError, ValueError):  # missing, a loop of links, not encodable
            continue
        if source is not None and real != real_root:
            return replace(source, asked=registered_path)
    return None


def _file(real: Path) -> SourceFiles | None:
    return SourceFiles(real, (real,)) if _is_data(real, SUFFIXES) else None


def _folder(real: Path, data_roots: tuple[Path, ...]) -> SourceFiles | None:
    names = folder_names(real)
    if not 0 < len(names) <= FOLDER_FILES_MAX:
        return None
    files = tuple((real / name).resolve(strict=True) for name in names)
    if len(set(files)) != len(files):  # two links to one file: its rows would count twice
        return None
    if all(_is_data(file, (".parquet",)) and _is_inside(file, data_roots) for file in files):
        return SourceFiles(real, files, names)
    return None


def _is_data(real: Path, suffixes: tuple[str, ...]) -> bool:
    plain = not PATTERN_LETTERS & set(str(real))
    return plain and real.suffix in suffixes and stat.S_ISREG(real.stat().st_mode)


def _is_inside(real: Path, data_roots: tuple[Path, ...]) -> bool:
    """True if the file is in a root. Roots may be absent; a link may lead from one to another."""
    return any(real.is_relative_to(root.resolve()) for root in data_roots)
