"""No file names a folder of a developer's machine or a package registry."""

import fnmatch
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
MACHINE = re.compile(rb"(?<![\w.-])/(?:work|root|home|Users)/\w")
REGISTRY = re.compile(
    rb"pypi\.org|pythonhosted\.org|registry\.(?:npmjs|yarnpkg)|anaconda\.(?:com|org)|docker\.io|ghcr\.io"
)


@pytest.mark.parametrize("pattern", [MACHINE, REGISTRY], ids=["folder", "registry"])
def test_no_file_names_a_folder_of_a_machine_or_a_package_registry(
    pattern: re.Pattern[bytes],
) -> None:
    offending = [
        f"{path.relative_to(TOP)}: {match[0].decode()}"
        for path in files()
        for match in pattern.finditer(path.read_bytes())
    ]
    assert offending == []


def test_the_patterns_match_their_examples() -> None:
    folder = "/".join(["", "root", "secret"])
    assert MACHINE.search(f'path = "{folder}"'.encode())
    assert MACHINE.search(f"file://{folder}".encode())
    assert not MACHINE.search(f"https://example.com{folder}".encode())
    assert REGISTRY.search(b"https://" + b"pypi" + b".org/simple")


def files() -> Iterator[Path]:
    """Files that git would track: everything except .git and files in .gitignore."""
    lines = (TOP / ".gitignore").read_text().splitlines()
    ignored = [".git", *(line.strip("/") for line in lines if line and not line.startswith("#"))]

    def kept(name: str) -> bool:
        return not any(fnmatch.fnmatch(name, pattern) for pattern in ignored)

    for folder, folders, names in os.walk(TOP):
        folders[:] = filter(kept, folders)
        yield from (Path(folder, name) for name in names if kept(name))
