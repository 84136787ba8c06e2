"""Draw docs/rooms.svg and docs/question.svg: `make pictures`.

The rooms and their arrows come from the import graph. The way of a question is a list of functions,
and tests/house/test_architecture.py follows a real question through them in this order.
"""

import importlib
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

import grimp

DOCS = Path(__file__).resolve().parents[1]
FONT = 'font-family="sans-serif" font-size="13"'
BOX, TEXT, LINE, FILL = "#3b5b7a", "#1c2733", "#8aa0b5", "#eef3f8"

# The purpose of each room, in a few words.
ROOMS = {
    "cli": "commands of the operator",
    "demo": "demo data",
    "main": "puts all rooms together",
    "settings": "environment variables",
    "stopping": "the grace period",
    "tuning": "interpreter settings",
    "web": "pages for people",
    "api": "HTTP routes",
    "store": "SQL: ledger, people, datasets",
    "telemetry": "metrics, logs, traces",
    "engines": "exact statistics of private rows",
    "actions": "what the service can do",
    "ports": "what actions need from outside",
    "planning": "question and card to plan",
    "ledger": "accounts, charges, chain",
    "mechanisms": "noise on exact statistics",
    "queries": "kinds of question, their shapes",
    "accounting": "privacy loss in five currencies",
    "data": "cards, columns, expressions",
    "access": "roles and principals",
    "names": "identifiers and names",
    "errors": "the tree of errors",
    "fault_points": "where tests kill a server",
    "caches": "caches with an owner",
    "nearest": "nearest names for messages",
}


class Step(NamedTuple):
    """A function on the way of a question, and what it does there."""

    function: str  # module:qualified name
    text: str


WAY = [
    Step("app.api.queries:ask", "read the body strictly, take the request key"),
    Step("app.actions.asking.ask_query:AnswerQuery.__call__", "answer the question, step by step"),
    Step("app.planning.plan:Planner.plan", "choose a mechanism and a price, from public facts"),
    Step("app.mechanisms.noise.laplace:prepare", "scale the noise to the charged epsilon"),
    Step("app.store.writer.batch:settle", "CHARGE: all accounts, the entry, one commit"),
    Step("app.engines.sql_engine:SqlEngine.exact", "read exact whole numbers, within a time limit"),
    Step("app.mechanisms.noise.additive:AdditiveRelease.draw", "add exact integer noise"),
    Step("app.store.writer.batch:settle", "RECORD: store the answer, if the attempt is current"),
    Step("app.actions.asking.charge:reply_from", "build the reply from the stored answer"),
    Step("app.api.queries:StoredResponse.__call__", "send the stored bytes"),
]


def layers() -> list[list[str]]:
    """The floors of the house, from the top, as import-linter checks them."""
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())
    contract = project["tool"]["importlinter"]["contracts"][0]
    return [[room.strip() for room in layer.split("|")] for layer in contract["layers"]]


def imports() -> set[tuple[str, str]]:
    """Which room imports which, less the arrows that follow from two others and those to the two
    lowest floors, which every room may use."""
    graph = grimp.build_graph("app")
    shared = {room for floor in layers()[-2:] for room in floor}
    direct: dict[str, set[str]] = {room: set() for floor in layers() for room in floor}
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            source, target = (name.split(".")[1:2] for name in (module, imported))
            if source and target and source != target:
                direct[source[0]].add(target[0])
    reached: dict[str, set[str]] = {}
    for floor in reversed(layers()):
        for room in floor:
            reached[room] = direct[room].union(*(reached[below] for below in direct[room]))
    return {
        (room, below)
        for room, rooms in direct.items()
        for below in rooms
        if below not in shared and not any(below in reached[between] for between in rooms)
    }


def svg(width: int, height: int, parts: Iterator[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {FONT}>\n'
        f'<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="{LINE}"/></marker></defs>\n'
        '<rect width="100%" height="100%" fill="white"/>\n'
    )
    return head + "\n".join(parts) + "\n</svg>\n"


def box(x: float, y: float, width: float, title: str, text: str) -> str:
    return (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="44" rx="6" fill="{FILL}" '
        f'stroke="{BOX}"/>'
        f'<text x="{x + width / 2:.0f}" y="{y + 18:.0f}" text-anchor="middle" fill="{TEXT}" '
        f'font-weight="bold">{escape(title)}</text>'
        f'<text x="{x + width / 2:.0f}" y="{y + 35:.0f}" text-anchor="middle" fill="{TEXT}" '
        f'font-size="11">{escape(text)}</text>'
    )


def rooms_svg() -> str:
    width, high, gap = 960, 84, 14
    places: dict[str, tuple[float, float, float]] = {}
    for row, floor in enumerate(layers()):
        wide = min(210.0, (width - gap * (len(floor) + 1)) / len(floor))
        left = (width - len(floor) * (wide + gap) + gap) / 2
        for column, room in enumerate(floor):
            places[room] = (left + column * (wide + gap), 16 + row * high, wide)

    def parts() -> Iterator[str]:
        for room, below in sorted(imports()):
            (x1, y1, w1), (x2, y2, w2) = places[room], places[below]
            yield (
                f'<path d="M{x1 + w1 / 2:.0f} {y1 + 44:.0f}L{x2 + w2 / 2:.0f} {y2:.0f}" '
                f'stroke="{LINE}" fill="none" marker-end="url(#arrow)"/>'
            )
        for room, (x, y, wide) in places.items():
            yield box(x, y, wide, room, ROOMS[room])

    return svg(width, 16 + len(layers()) * high, parts())


def question_svg() -> str:
    rooms = ["api", "actions", "planning", "mechanisms", "store", "engines"]
    width, left, wide, high = 1120, 40, 176, 66

    def parts() -> Iterator[str]:
        for column, room in enumerate(rooms):
            x = left + column * wide + wide / 2
            yield f'<text x="{x:.0f}" y="24" text-anchor="middle" font-weight="bold">{room}</text>'
            yield f'<path d="M{x:.0f} 34V{44 + len(WAY) * high}" stroke="#d5dde5"/>'
        previous: tuple[float, float] | None = None
        for row, step in enumerate(WAY):
            module, name = step.function.split(":")
            column = rooms.index(module.split(".")[1])
            x, y = left + column * wide + wide / 2, 70 + row * high
            if previous is not None:
                yield (
                    f'<path d="M{previous[0]:.0f} {previous[1] + 20:.0f}L{x:.0f} {y - 14:.0f}" '
                    f'stroke="{LINE}" fill="none" marker-end="url(#arrow)"/>'
                )
            yield f'<circle cx="{x:.0f}" cy="{y:.0f}" r="11" fill="{BOX}"/>'
            yield (
                f'<text x="{x:.0f}" y="{y + 4:.0f}" text-anchor="middle" fill="white" '
                f'font-size="11">{row + 1}</text>'
            )
            side, anchor = (16, "start") if column < 4 else (-16, "end")
            yield (
                f'<text x="{x + side:.0f}" y="{y - 2:.0f}" text-anchor="{anchor}" '
                f'fill="{TEXT}">{escape(step.text)}</text>'
            )
            file = "/".join(module.split(".")[1:])
            yield (
                f'<text x="{x + side:.0f}" y="{y + 12:.0f}" text-anchor="{anchor}" fill="#5b6b7a" '
                f'font-size="11">{escape(f"{file}.py {name}")}</text>'
            )
            previous = (x, y)

    return svg(width, 60 + len(WAY) * high, parts())


def function_of(step: Step) -> object:
    module, name = step.function.split(":")
    found: object = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def pictures() -> dict[Path, str]:
    for step in WAY:
        function_of(step)
    return {DOCS / "rooms.svg": rooms_svg(), DOCS / "question.svg": question_svg()}


if __name__ == "__main__":
    for path, text in pictures().items():
        path.write_text(text)
