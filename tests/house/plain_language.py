"""Find prose that a stranger has to read twice, and places where a stranger is lost.

`python -m tests.house.plain_language` rewrites the allow-list, which may only shrink: it holds how
often each file breaks a rule today. With files or folders as arguments it shows their lines.
"""

import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
ALLOWED = Path(__file__).with_name("allowed.json")
CODE = ("app", "benchmarks", "client", "docs", "migrations", "tests")
PROSE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "client", "docs")

FILES_MAX = 15  # in a folder
LINES_MAX = 350  # in a file of code
WIDTH_MAX = 120  # of a line of Markdown
WORDS_MAX = 25  # in a sentence of the documentation

# Words of the old dialect. Each has a plain word that names who does what.
BANNED = re.compile(
    r"\b(told|tells|telling|whoever|whatever|whichever|borne|hangs? on|becomes? of|become of"
    r"|at hand|at work|so many|as it is|were it|be they|by what|of whom|of which)\b",
    re.IGNORECASE,
)
OPENINGS = re.compile(r"(?:^|[.!?:]\s+)(Of|What|Whose|So many|By what)\s[a-z]")
# All lines that break one of the two, and more: finding comments takes long.
SUSPECT = re.compile(rf"{BANNED.pattern}|(?-i:\b(Of|What|Whose|So many|By what)\s[a-z])", re.I)
# Names that say when a value was obtained, not what it is.
VAGUE_NAMES = frozenset({"each", "found", "wanted", "asked", "given", "place", "told"})
VAGUE_LINES_MAX = 3
# Text that must stand there as it is: this list itself.
SKIPPED = {"tests/house/plain_language.py", "tests/house/test_plain_language.py"}


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


def test_names(path: Path) -> list[tuple[int, str]]:
    """Names of tests that use banned words."""
    functions = (node for node in nodes_of(path) if isinstance(node, ast.FunctionDef))
    spoken = ((node.lineno, node.name.replace("_", " ")) for node in functions)
    return [(line, name) for line, name in spoken if BANNED.search(name)]


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


def _long(paragraph: list[str], start: int) -> list[tuple[int, str]]:
    text = re.sub(r"`[^`]*`", "code", " ".join(paragraph))
    text = re.sub(r"\]\([^)]*\)", "]", text)
    sentences = re.split(r"(?<=[.!?:;])\s+", text)
    return [(start, each[:90]) for each in sentences if len(each.split()) > WORDS_MAX]


def wide_lines(path: Path) -> list[tuple[int, str]]:
    numbered = enumerate(path.read_text().splitlines(), 1)
    return [(n, line[:60]) for n, line in numbered if len(line) > WIDTH_MAX and line[:1] != "|"]


def counts() -> dict[str, dict[str, int]]:
    """How often each file breaks each rule; files that break none are left out."""
    code = [path for path in code_files() if name_of(path) not in SKIPPED]
    prose = prose_files()
    words, tests, names = Counter[str](), Counter[str](), Counter[str]()
    for path in (*code, *prose):
        name = name_of(path)
        words[name] = len(dialect(path))
        if path.name.startswith("test_"):
            tests[name] = len(test_names(path))
        if name.startswith("app/"):
            names[name] = len(vague_names(path))
    rules = {
        "dialect": words,
        "test names": tests,
        "vague names": names,
        "long sentences": Counter({name_of(p): len(long_sentences(p)) for p in prose}),
        "wide lines": Counter({name_of(p): len(wide_lines(p)) for p in prose}),
        "lines past the limit": Counter(
            {name_of(p): max(0, len(p.read_text().splitlines()) - LINES_MAX) for p in code}
        ),
        "files past the limit": Counter(
            {folder: max(0, n - FILES_MAX) for folder, n in files_of_folders(code).items()}
        ),
        "names defined twice": Counter({name: n - 1 for name, n in public_types().items()}),
    }
    return {
        rule: {name: n for name, n in sorted(broken.items()) if n} for rule, broken in rules.items()
    }


def files_of_folders(code: list[Path]) -> Counter[str]:
    return Counter(name_of(path.parent) for path in code)


def public_types() -> Counter[str]:
    """How many modules of the app define a public type of each name."""
    names: Counter[str] = Counter()
    for path in code_files():
        if name_of(path).startswith("app/"):
            module = ast.parse(path.read_text())
            defined = {node.name for node in module.body if isinstance(node, ast.ClassDef)}
            names.update(name for name in defined if not name.startswith("_"))
    return names


def show(places: list[str]) -> None:
    """Every broken rule of these files or folders, line by line."""
    for path in tracked(*places):
        checks = [dialect, wide_lines, long_sentences] if path.suffix == ".md" else [dialect]
        if path.suffix == ".py":
            checks += [vague_names, test_names] if path.name.startswith("test_") else [vague_names]
        elif path.suffix != ".md":
            continue
        for check in checks:
            for line, text in check(path):
                print(f"{name_of(path)}:{line}: {check.__name__}: {text}")


if __name__ == "__main__":
    if sys.argv[1:]:
        show(sys.argv[1:])
    else:
        ALLOWED.write_text(json.dumps(counts(), indent=1, sort_keys=True) + "\n")
