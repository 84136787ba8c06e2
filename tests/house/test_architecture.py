"""The diagrams and the page of the architecture match the code."""

import importlib
import re
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from docs.tools.draw_architecture import ROOMS, WAY, function_of, layers, pictures
from tests.actions.service import service_in
from tests.audit import INVARIANTS

TOP = Path(__file__).resolve().parents[2]
PAGE = (TOP / "docs" / "architecture.md").read_text()


def test_the_diagrams_are_those_that_the_script_draws() -> None:
    for path, text in pictures().items():
        assert path.read_text() == text, f"{path.name} is out of date: run `make pictures`"


def test_a_question_takes_the_path_of_the_diagram(tmp_path: Path) -> None:
    """A plain count without HTTP calls the functions of the other rooms in order."""
    steps = [step for step in WAY if not step.function.startswith("app.api.")]
    codes = [function_of(step).__code__ for step in steps]  # type: ignore[attr-defined]
    calls: list[Any] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in codes:
            calls.append(frame.f_code)

    with service_in(tmp_path) as service:
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            service.ask({"kind": "count"})
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    position = 0
    for code, step in zip(codes, steps, strict=True):
        assert code in calls[position:], f"{step.function} is not called at its step"
        position = calls.index(code, position) + 1


def test_every_room_has_a_section_with_five_existing_names() -> None:
    for room in (room for floor in layers() for room in floor):
        assert room in ROOMS
        section = re.search(rf"^### `{room}`\n(.*?)(?=^##|\Z)", PAGE, re.S | re.M)
        assert section is not None, f"docs/architecture.md has no section for {room}"
        names = re.findall(r"`([\w.]+):(\w+)`", section[1])
        assert len(names) >= min(5, public_names(room)), f"{room} has too few names"
        for module, name in names:
            found = importlib.import_module(f"app.{module}")
            assert hasattr(found, name), f"app.{module} has no {name}"


def test_the_page_lists_the_invariants() -> None:
    section = PAGE.partition("\n## Invariants\n")[2].partition("\n## ")[0]
    assert dict(re.findall(r"^\| (I\d+) \| (.*) \|$", section, re.M)) == INVARIANTS


def public_names(room: str) -> int:
    """Number of classes and functions in a room of one file; a folder has enough."""
    path = TOP / "app" / f"{room}.py"
    if not path.exists():
        return 5
    return len(re.findall(r"^(?:async def|def|class) [A-Za-z]", path.read_text(), re.M))
