"""Find prose that a stranger has to read twice, and places where a stranger is lost.

`python -m tests.house.plain_language` shows every line that breaks a rule. With files or folders as
arguments it shows those of them.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
CODE = ("app", "benchmarks", "client", "docs", "migrations", "tests")
PROSE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "client", "docs")

FILES_MAX = 15  # in a folder
LINES_MAX = 350  # in a file of code
FUNCTION_LINES_MAX = 50  # in a function of the app, with its docstring
WIDTH_MAX = 120  # of a line of Markdown
WORDS_MAX = 25  # in a sentence of the documentation
DOCSTRING_WORDS_MAX = 35  # in a sentence of a docstring, where symbols of formulas are words too

# Words of the old dialect. Each has a plain word that names who does what.
BANNED = re.compile(
    r"\b(told|tells|telling|whoever|whatever|whichever|borne|hangs? on|becomes? of|become of"
    r"|at hand|at work|so many|as it is|were it|be they|by what|of whom|of which)\b",
    re.IGNORECASE,
)
OPENINGS = re.compile(r"(?:^|[.!?:]\s+)(Of|What|Whose|So many|By what)\s[a-z]")
# Notes of the authors. A reader needs the paper and its theorem, or the formula itself.
MISSING_DOCUMENTS = re.compile(
    r"mechanism sheet|of_the_sheet|of the sheet|mechanisms\.md M\d|accounting(\.md| notes)|lecture",
    re.I,
)
# All lines that break one of the two, and more: finding comments takes long.
SUSPECT = re.compile(rf"{BANNED.pattern}|(?-i:\b(Of|What|Whose|So many|By what)\s[a-z])", re.I)
# Names that say when a value was obtained, not what it is.
VAGUE_NAMES = frozenset({"each", "found", "wanted", "asked", "given", "place", "told"})
VAGUE_LINES_MAX = 3
Rule = Callable[[Path], list[tuple[int, str]]]
# Text that must stand there as it is: this list itself, and a generated file.
SKIPPED = {
    "client/bursar/bodies.py",
    "tests/house/plain_language.py",
    "tests/house/test_plain_language.py",
}


def tracked(*places: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *places],
        cwd=TOP,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = (TOP / line for line in listed.stdout.splitlines())
    return [path for path in paths if path.exists()]


def code_files() -> list[Path]:
    return [path for path in tracked(*CODE) if path.suffix == ".py"]


def prose_files() -> list[Path]:
    return [path for path in tracked(*PROSE) if path.suffix == ".md"]


def name_of(path: Path) -> str:
    return path.relative_to(TOP).as_posix()


@lru_cache(maxsize=1)  # several rules read one file after the other
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text())))


def texts_of_code(path: Path) -> Iterator[tuple[int, str]]:
    """Docstrings, other literal sentences, and comments that may break a rule, with their line."""
    source = path.read_text()
    if any("#" in line and SUSPECT.search(line) for line in source.splitlines()):
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string.lstrip("# ")
    for node in nodes_of(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def dialect(path: Path) -> list[tuple[int, str]]:
    """Lines with banned words, or with a sentence that opens in the old way."""
    if path.suffix == ".py":
        texts = list(texts_of_code(path))
    else:
        texts = list(enumerate(path.read_text().splitlines(), 1))
    lines = []
    for line, text in texts:
        for match in (*BANNED.finditer(text), *OPENINGS.finditer(text)):
            excerpt = text[max(0, match.start() - 40) : match.end() + 40].replace("\n", " ")
            lines.append((line, excerpt.strip()))
    return lines


def identifiers(path: Path) -> list[tuple[int, str]]:
    """Names that use banned words, where they are defined."""
    lines: set[tuple[int, str]] = set()
    for node in nodes_of(path):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                lines.add((node.lineno, name))
            case ast.ClassDef(name=name) | ast.arg(arg=name):
                lines.add((node.lineno, name))
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                lines.add((node.lineno, name))
            case _:
                pass
    spoken = re.compile(r"_|(?<=[a-z])(?=[A-Z])")
    return sorted((line, name) for line, name in lines if BANNED.search(spoken.sub(" ", name)))


def missing_documents(path: Path) -> list[tuple[int, str]]:
    """Lines that cite notes which are not in the repository."""
    numbered = enumerate(path.read_text().splitlines(), 1)
    return [(number, line.strip()) for number, line in numbered if MISSING_DOCUMENTS.search(line)]


def vague_names(path: Path) -> list[tuple[int, str]]:
    """Local names that say nothing about the value, and live longer than a few lines."""
    lines = []
    for function in nodes_of(path):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        uses: defaultdict[str, list[int]] = defaultdict(list)
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and node.id in VAGUE_NAMES:
                uses[node.id].append(node.lineno)
            elif isinstance(node, ast.arg) and node.arg in VAGUE_NAMES:
                uses[node.arg].append(node.lineno)
        for name, places in uses.items():
            if max(places) - min(places) > VAGUE_LINES_MAX:
                lines.append((min(places), f"{name} in {function.name}"))
    return lines


def long_sentences(path: Path) -> list[tuple[int, str]]:
    """Sentences of the documentation past WORDS_MAX words; code and tables do not count."""
    text = re.sub(
        r"```.*?```", lambda block: "\n" * block[0].count("\n"), path.read_text(), flags=re.S
    )
    lines: list[tuple[int, str]] = []
    paragraph: list[str] = []
    start = 1
    for number, line in enumerate([*text.splitlines(), ""], 1):
        plain = line.strip()
        if plain and not plain.startswith(("|", "#", "<")):
            if not paragraph or plain.startswith(("- ", "* ")) or re.match(r"\d+\. ", plain):
                lines += _long(paragraph, start)
                paragraph, start = [], number
            paragraph.append(plain)
        else:
            lines += _long(paragraph, start)
            paragraph = []
    return lines


def _long(paragraph: list[str], start: int, words_max: int = WORDS_MAX) -> list[tuple[int, str]]:
    text = re.sub(r"`[^`]*`", "code", " ".join(paragraph))
    text = re.sub(r"\]\([^)]*\)", "]", text)
    sentences = re.split(r"(?<=[.!?:;])\s+", text)
    return [(start, each[:90]) for each in sentences if len(each.split()) > words_max]


def long_docstrings(path: Path) -> list[tuple[int, str]]:
    """Sentences of docstrings past DOCSTRING_WORDS_MAX words, apart from tables and formulas."""
    lines: list[tuple[int, str]] = []
    for node in nodes_of(path):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node) or ""
            for paragraph in re.split(r"\n\s*\n|\n(?=[-*] |\d+\. |    )", text):
                prose = [line for line in paragraph.splitlines() if not _DRAWN.match(line)]
                start = getattr(node, "lineno", 1)
                lines += _long(prose, start, DOCSTRING_WORDS_MAX)
    return lines


_DRAWN = re.compile(r"    |\||[│├└]")  # lines of formulas, tables and trees


def wide_lines(path: Path) -> list[tuple[int, str]]:
    numbered = enumerate(path.read_text().splitlines(), 1)
    return [(n, line[:60]) for n, line in numbered if len(line) > WIDTH_MAX and line[:1] != "|"]


def long_functions(path: Path) -> list[tuple[int, str]]:
    """Functions past FUNCTION_LINES_MAX lines, without their decorators."""
    lines = []
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES_MAX:
                lines.append((node.lineno, f"{node.name} has {length} lines"))
    return lines


def long_files(path: Path) -> list[tuple[int, str]]:
    length = len(path.read_text().splitlines())
    return [(LINES_MAX + 1, f"{length} lines")] if length > LINES_MAX else []


def rules_for(path: Path) -> list[Rule]:
    """The rules for lines of this file."""
    name = name_of(path)
    if path.suffix == ".md":
        return [dialect, missing_documents, long_sentences, wide_lines]
    if path.suffix != ".py" or name in SKIPPED:
        return []
    rules: list[Rule] = [dialect, identifiers, missing_documents, long_docstrings, long_files]
    if name.startswith(("app/", "client/bursar/")):
        rules += [vague_names, long_functions]
    return rules


def broken_lines(paths: list[Path]) -> list[str]:
    """Every line of these files that breaks a rule."""
    return [
        f"{name_of(path)}:{line}: {rule.__name__}: {text}"
        for path in paths
        for rule in rules_for(path)
        for line, text in rule(path)
    ]


def full_folders() -> list[str]:
    """Folders with more than FILES_MAX files of code."""
    sizes = Counter(name_of(path.parent) for path in code_files())
    return [f"{folder} has {size} files" for folder, size in sizes.items() if size > FILES_MAX]


def types_defined_twice() -> list[str]:
    """Public types and type aliases of the app that have several meanings.

    Several modules may give the same alias the same meaning."""
    meanings: defaultdict[str, set[str]] = defaultdict(set)
    for path in code_files():
        if name_of(path).startswith("app/"):
            for name, meaning in _types(path):
                meanings[name].add(meaning)
    return sorted(name for name, several in meanings.items() if len(several) > 1)


def _types(path: Path) -> Iterator[tuple[str, str]]:
    """Public types of a module, with a text that is equal for equal meanings."""
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.ClassDef(name=name):
                meaning = name_of(path)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                meaning = ast.unparse(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                meaning = ast.unparse(value)
            case _:
                continue
        if re.match(r"[A-Z]", name) and not name.isupper():
            yield name, meaning


if __name__ == "__main__":
    if sys.argv[1:]:
        print("\n".join(broken_lines(tracked(*sys.argv[1:]))))
    else:
        lines = broken_lines([*code_files(), *prose_files()])
        print("\n".join([*lines, *full_folders(), *types_defined_twice()]))
