"""Language and floor plan follow the rules of the house, which are in `plain_language.py`."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.house import plain_language
from tests.house.plain_language import BANNED, OPENINGS, code_files, prose_files


def test_no_line_breaks_a_rule() -> None:
    broken = plain_language.broken_lines([*code_files(), *prose_files()])
    assert not broken, "write these again, or divide them:\n" + "\n".join(broken)


def test_no_folder_has_too_many_files() -> None:
    assert not plain_language.full_folders()


def test_no_two_modules_define_a_public_type_of_the_same_name() -> None:
    assert not plain_language.types_defined_twice()


def test_types_and_aliases_of_several_meanings_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {
        "a": "class Terms: ...\nRow = tuple[int, ...]\nStep: TypeAlias = int\nLIMIT = 1\n",
        "b": "Terms = int\nRow = tuple[int, ...]\nStep: TypeAlias = str\nLIMIT = 2\n",
    }
    paths = [tmp_path / "app" / f"{name}.py" for name in texts]
    paths[0].parent.mkdir()
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_text(text)
    monkeypatch.setattr(plain_language, "TOP", tmp_path)
    monkeypatch.setattr(plain_language, "code_files", lambda: paths)
    assert plain_language.types_defined_twice() == ["Step", "Terms"]


@pytest.mark.parametrize(
    "sentence",
    ["it is told", "Whatever comes", "what becomes of it", "at work now", "so many rows"],
)
def test_the_old_dialect_is_seen(sentence: str) -> None:
    assert BANNED.search(sentence)


@pytest.mark.parametrize(
    "sentence", ["Of a row it is known", "Done. What is left stays", "Whose is"]
)
def test_openings_of_the_old_dialect_are_seen(sentence: str) -> None:
    assert OPENINGS.search(sentence)


@pytest.mark.parametrize(
    ("check", "text", "number"),
    [
        (plain_language.dialect, "# told twice\nx = 'it is told'\n", 2),
        (plain_language.vague_names, "def f(x):\n found = x\n\n\n\n\n return found\n", 1),
        (plain_language.vague_names, "def f(x):\n found = x\n return found\n", 0),
        (plain_language.identifiers, "def test_it_is_told() -> None: ...\n", 1),
        (plain_language.identifiers, "told_from = TellsAll = threshold = 1\n", 2),
        (plain_language.identifiers, "class WhoTells:\n def f(self, whoever): ...\n", 2),
        (plain_language.identifiers, "x = y.told\ny.told = x\n", 1),
        (plain_language.missing_documents, "x = 1  # of the sheet\n", 1),
        (plain_language.long_docstrings, f'"""{"word " * 34}word."""\n', 0),
        (plain_language.long_docstrings, f'def f():\n """{"word " * 35}word."""\n', 1),
        (plain_language.long_docstrings, f'"""A.\n\n    {"x + " * 40}\n| {"x " * 40}"""\n', 0),
        (plain_language.long_functions, "@x\ndef f():\n" + " x\n" * 49, 0),
        (plain_language.long_functions, "@x\ndef f():\n" + " x\n" * 50, 1),
        (plain_language.long_files, "x\n" * 350, 0),
        (plain_language.long_files, "x\n" * 351, 1),
    ],
)
def test_rules_about_code_see_what_they_are_for(
    tmp_path: Path, check: Callable[[Path], list[tuple[int, str]]], text: str, number: int
) -> None:
    path = tmp_path / "file.py"
    path.write_text(text)
    assert len(check(path)) == number


def test_rules_about_pages_see_long_sentences_and_wide_lines(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    short, long = " ".join(["word"] * 25), " ".join(["word"] * 26)
    path.write_text(f"{long}.\n\n{short}.\n\n`{'x' * 120}`\n")
    assert len(plain_language.long_sentences(path)) == 1
    assert len(plain_language.wide_lines(path)) == 3
