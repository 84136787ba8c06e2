from pathlib import Path

import pytest

from app.engines.paths import resolve_source
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


def test_a_file_under_a_root_is_found_by_relative_or_absolute_path(root: Path) -> None:
    roots = (root.parent / "absent", root)
    assert resolve_source("a.csv", roots) == root / "a.csv"
    assert resolve_source("deep/b.parquet", roots) == root / "deep" / "b.parquet"
    assert resolve_source(str(root / "a.csv"), roots) == root / "a.csv"
    assert resolve_source("within.csv", roots) == root / "a.csv"


@pytest.mark.parametrize(
    "path",
    [
        "", ".", "/", "absent.csv", "notes.txt", "folder.csv", "deep", "out.csv", "loop.csv",
        "../outside.csv", "deep/../../outside.csv", "deep/../a.csv", "a.csv\0", "\0", "st*r.csv",
        "*.csv", "/etc/passwd", "/etc/absent.csv", "etc/passwd", "{outside}", "\ud800.csv",
        "http://127.0.0.1/a.csv", "x" * 5000 + ".csv",
    ],
)  # fmt: skip
def test_every_other_path_is_refused_in_the_same_words(root: Path, path: str) -> None:
    path = path.replace("{outside}", str(root.parent / "outside.csv"))
    with pytest.raises(Invalid) as refused:
        resolve_source(path, (root,))
    assert refused.value.detail == "/source/path: a .csv or .parquet file under a data root"
    assert refused.value.__context__ is None


def test_a_root_may_itself_be_a_link(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    assert resolve_source("a.csv", (link,)) == root / "a.csv"
    assert resolve_source(str(link / "a.csv"), (link,)) == root / "a.csv"
