import os
from pathlib import Path

import pytest

from app.engines.files.paths import FOLDER_FILES_MAX, WANTED, SourceFiles, resolve_source
from app.errors import Invalid


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside.csv").write_text("a\n1\n")
    made = tmp_path / "root"
    (made / "deep").mkdir(parents=True)
    (made / "a.csv").write_text("a\n1\n")
    (made / "deep" / "b.parquet").write_text("")
    (made / "notes.txt").write_text("")
    (made / "folder.csv").mkdir()
    (made / "st*r.csv").write_text("a\n1\n")
    (made / "out.csv").symlink_to(tmp_path / "outside.csv")
    (made / "etc").symlink_to("/etc")
    (made / "loop.csv").symlink_to(made / "loop.csv")
    (made / "within.csv").symlink_to(made / "a.csv")
    return made


def one(file: Path) -> SourceFiles:
    return SourceFiles(file, (file,))


def test_a_file_under_a_root_is_found_by_relative_or_absolute_path(root: Path) -> None:
    roots = (root.parent / "absent", root)
    assert resolve_source("a.csv", roots) == one(root / "a.csv")
    assert resolve_source("deep/b.parquet", roots) == one(root / "deep" / "b.parquet")
    assert resolve_source(str(root / "a.csv"), roots) == one(root / "a.csv")
    assert resolve_source("within.csv", roots) == one(root / "a.csv")


@pytest.mark.parametrize(
    "path",
    [
        "", ".", "/", "absent.csv", "notes.txt", "folder.csv", "out.csv", "loop.csv",
        "../outside.csv", "deep/../../outside.csv", "deep/../a.csv", "a.csv\0", "\0", "st*r.csv",
        "*.csv", "/etc/passwd", "/etc/absent.csv", "etc/passwd", "{outside}", "\ud800.csv",
        "http://127.0.0.1/a.csv", "x" * 5000 + ".csv",
    ],
)  # fmt: skip
def test_every_other_path_is_refused_with_the_same_message(root: Path, path: str) -> None:
    path = path.replace("{outside}", str(root.parent / "outside.csv"))
    with pytest.raises(Invalid) as refused:
        resolve_source(path, (root,))
    assert refused.value.detail == f"/source/path: {WANTED}"
    assert refused.value.__context__ is None


def test_a_root_may_itself_be_a_link(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    assert resolve_source("a.csv", (link,)) == one(root / "a.csv")
    assert resolve_source(str(link / "a.csv"), (link,)) == one(root / "a.csv")


@pytest.fixture
def folder(root: Path) -> Path:
    made = root / "parts"
    made.mkdir()
    for name in ("b.parquet", "a.parquet", "_c.parquet", ".d.parquet", "_SUCCESS", "e.csv"):
        (made / name).write_text("")
    return made


def test_the_parquet_files_of_a_folder_are_listed_by_name(root: Path, folder: Path) -> None:
    (root / "link").symlink_to(folder)
    expected = SourceFiles(
        folder, (folder / "a.parquet", folder / "b.parquet"), ("a.parquet", "b.parquet")
    )
    for path in ("parts", "parts/", str(folder), "link"):
        assert resolve_source(path, (root,)) == expected


def test_a_link_in_a_folder_may_point_anywhere_inside_the_roots(root: Path, folder: Path) -> None:
    (folder / "c.parquet").symlink_to(root / "deep" / "b.parquet")
    assert resolve_source("parts", (root,)).files[-1] == root / "deep" / "b.parquet"
    other = root.parent / "other"
    other.mkdir()
    (other / "x.parquet").write_text("")
    (folder / "d.parquet").symlink_to(other / "x.parquet")
    assert resolve_source("parts", (root, other)).files[-1] == other / "x.parquet"
    must_be_refused("parts", root)


def must_be_refused(path: str, root: Path) -> None:
    with pytest.raises(Invalid) as refused:
        resolve_source(path, (root,))
    assert refused.value.detail == f"/source/path: {WANTED}"


def test_a_folder_that_is_not_one_table_or_points_outside_is_refused(
    root: Path, folder: Path
) -> None:
    outside = root.parent / "outside.parquet"
    outside.write_text("")
    bad = folder / "bad.parquet"
    twice = folder / "a.parquet"  # its rows would count twice
    absent, csv, deep = folder / "absent.parquet", root / "a.csv", root / "deep"
    for target in (outside, absent, twice, csv, deep):
        bad.symlink_to(target)
        must_be_refused("parts", root)
        bad.unlink()
    os.mkfifo(bad)
    must_be_refused("parts", root)
    bad.unlink()
    for name in ("sub", "bad.parquet", "_temporary"):
        (folder / name).mkdir()
        must_be_refused("parts", root)
        (folder / name).rmdir()
    (folder / "st[a]r.parquet").write_text("")
    must_be_refused("parts", root)
    (folder / "st[a]r.parquet").unlink()
    assert len(resolve_source("parts", (root,)).files) == 2
    folder.rename(root / "p*rts")
    must_be_refused("p*rts", root)


def test_a_root_an_empty_folder_and_a_folder_with_too_many_files_are_refused(
    root: Path, folder: Path
) -> None:
    for path in (".", str(folder)):
        must_be_refused(path, folder)
    for i in range(FOLDER_FILES_MAX - 1):
        (folder / f"{i}.parquet").write_text("")
    must_be_refused("parts", root)
    (folder / "a.parquet").unlink()
    assert len(resolve_source("parts", (root,)).files) == FOLDER_FILES_MAX
    for name in folder.glob("[a-z0-9]*.parquet"):
        name.unlink()
    must_be_refused("parts", root)
