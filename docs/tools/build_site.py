"""Build the documentation as a site into build/site: `make docs`.

The pages are plain Markdown and need no generator. This copies them beside the README, so that
their links to it hold, makes the table of contents from docs/README.md, and runs zensical without a
network. Then it checks every link and every file that a page would load.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from typing_extensions import override

DOCS = Path(__file__).resolve().parents[1]
TOP = DOCS.parent
BUILD = TOP / "build"
LEFT_OUT = {".py", ".pyc"}
SETTINGS = DOCS / "mkdocs.yml"
OUTSIDE = re.compile(r"(?:https?:)?//", re.IGNORECASE)
CSS_LOAD = re.compile(r"(?:@import\s+|url\()\s*[\"']?([^\"')\s;]+)", re.IGNORECASE)
# Attributes by which a page loads a file at once; `href` of <a> is a link.
LOADS = {
    ("script", "src"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("object", "data"),
}
LOADED_RELATIONS = {"stylesheet", "icon", "preload", "modulepreload", "preconnect", "dns-prefetch"}
# The theme's script fetches these from elsewhere if a page has them. No page may.
DORMANT = ("mermaid", "glightbox", "pyodide", "md-source")


class Reference(NamedTuple):
    """A link of a page, or a file that it loads."""

    target: str
    loaded: bool


class Page(HTMLParser):
    """The references, anchors and classes of a built page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.references: list[Reference] = []
        self.anchors: set[str] = set()
        self.classes: set[str] = set()
        self.feed(text)

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        members = {name: value or "" for name, value in attrs}
        self.anchors |= {members[name] for name in ("id", "name") if members.get(name)}
        self.classes |= set(members.get("class", "").split())
        for name, value in members.items():
            if (tag, name) in LOADS:
                self.references.append(Reference(value, loaded=True))
        if "href" in members and tag in ("a", "link"):
            relations = set(members.get("rel", "").split())
            loaded = tag == "link" and bool(relations & LOADED_RELATIONS)
            self.references.append(Reference(members["href"], loaded))


def copy_pages(folder: Path) -> None:
    """Copy the pages as they lie in the checkout, with those that they link to."""
    for path in [
        *DOCS.rglob("*"),
        TOP / "client" / "README.md",
        *TOP.glob("*.md"),
        TOP / "LICENSE",
    ]:
        if path.is_file() and path != SETTINGS and path.suffix not in LEFT_OUT:
            copy = folder / path.relative_to(TOP)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


def contents() -> list[dict[str, object]]:
    """The sections of docs/README.md with their pages, for the navigation."""
    text = (DOCS / "README.md").read_text(encoding="utf-8")
    sections: list[dict[str, object]] = [{"Bursar": "README.md"}, {"Contents": "docs/README.md"}]
    seen: set[str] = set()
    for title, body in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL):
        items = []
        for name, link in re.findall(r"^\| \[([^\]]+)\]\(([^)#]+)[^)]*\)", body, re.MULTILINE):
            page = (DOCS / link).resolve().relative_to(TOP).as_posix()
            if page not in seen:
                seen.add(page)
                items.append({name: page})
        if items:
            sections.append({title: items})
    return sections


def problems(site: Path) -> list[str]:
    """Broken links, and files that a page would load from elsewhere."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    messages = []
    for path, page in pages.items():
        name = path.relative_to(site)
        dormant = [word for word in DORMANT if word in page.classes]
        messages += [f"{name}: has {word}, which loads a file from elsewhere" for word in dormant]
        for reference in page.references:
            problem = _problem(site, path, reference, pages)
            messages += [f"{name}: {problem}"] if problem else []
    messages += [f"{path.relative_to(site)}: loads {url}" for path, url in _outside_css(site)]
    return sorted(set(messages))


def _problem(site: Path, path: Path, reference: Reference, pages: dict[Path, Page]) -> str | None:
    target, loaded = reference
    if OUTSIDE.match(target):
        return f"loads {target}" if loaded else None
    parts = urlsplit(target)
    if parts.scheme or path.name == "404.html":  # that page may be shown for any address
        return None
    where = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    where = where / "index.html" if where.is_dir() else where
    if not where.is_file() or not where.is_relative_to(site):
        return f"there is no {target}"
    if parts.fragment and where in pages and parts.fragment not in pages[where].anchors:
        return f"{target}: there is no such heading"
    return None


def _outside_css(site: Path) -> Iterator[tuple[Path, str]]:
    for path in site.rglob("*.css"):
        for url in CSS_LOAD.findall(path.read_text(encoding="utf-8")):
            if OUTSIDE.match(url):
                yield path, url


def build(build_folder: Path = BUILD) -> Path:
    """Build the site, and return its folder. Raises SystemExit if anything is wrong."""
    source, site = build_folder / "site-source", build_folder / "site"
    shutil.rmtree(source, ignore_errors=True)
    shutil.rmtree(site, ignore_errors=True)
    copy_pages(source / "pages")
    settings = SETTINGS.read_text(encoding="utf-8")
    configuration = source / "mkdocs.yml"
    configuration.write_text(f"{settings}nav: {json.dumps(contents())}\n", encoding="utf-8")
    program = Path(sys.executable).with_name("zensical")
    done = subprocess.run(  # noqa: S603  # our own arguments
        [program, "build", "--strict", "--clean", "--config-file", configuration],
        cwd=source,
        capture_output=True,
        text=True,
    )
    if done.returncode or not (source / "site" / "index.html").is_file():
        raise SystemExit(f"zensical failed:\n{done.stdout}{done.stderr}")
    (source / "site").rename(site)
    wrong = problems(site)
    if wrong:
        raise SystemExit("\n".join(["The site has broken links or outside files:", *wrong]))
    return site


if __name__ == "__main__":
    sys.stdout.write(f"The site is in {build().relative_to(TOP)}: open index.html.\n")
