"""Nothing is counted or traced at the time of private work, only at public times."""

import asyncio
import time
from contextlib import AbstractContextManager, nullcontext

import pytest

from app.actions.scheduling.slots import Lanes, Slot, Slots
from app.ports.telemetry import PastSpan

GRID = 60
SLOT = 0.005


class Notebook:
    """An observer that notes what it is given, and when."""

    def __init__(self) -> None:
        self.counted: list[tuple[str, str, int]] = []
        self.spans: list[PastSpan] = []

    def count(self, name: str, label: str = "", number: int = 1) -> None:
        self.counted.append((name, label, number))

    def batch(self, orders: int) -> None:
        raise AssertionError("there is no writer here")

    def span(self, name: str) -> AbstractContextManager[object]:
        return nullcontext()

    def past_spans(self, *spans: PastSpan) -> None:
        self.spans.extend(spans)


def make_slots(notebook: Notebook) -> Slots:
    return Slots(Lanes(2, 2, 2, 2), public=True, grid_seconds=GRID, observer=notebook)


async def reported(slots: Slots, work_seconds: float, *, overran: bool = False) -> float:
    """One question whose private work takes this long, reported when all is over."""
    loop = asyncio.get_running_loop()
    slot = slots.arrive("ada", SLOT)
    assert isinstance(slot, Slot)
    await slot.begun
    await slot.start(lambda: time.sleep(work_seconds))
    await asyncio.sleep(2 * SLOT)  # the slot is over
    slot.overran = overran
    before = loop.time()
    slots.report(slot, "count")
    return before


def test_the_span_of_private_work_is_its_slot_however_long_the_work_takes() -> None:
    for work_seconds in (0.0, 0.1):
        notebook = Notebook()
        shown = asyncio.run(reported(make_slots(notebook), work_seconds))
        assert notebook.counted == [("slots", "quick", 1), ("slot_ms", "quick", GRID * 1000)]
        (work, record) = notebook.spans
        assert (work[0], record[0]) == ("private work", "record")
        assert work[2] - work[1] == pytest.approx(SLOT, abs=1e-9)
        assert record[1] == work[2]
        assert record[2] >= shown


def test_an_overrun_is_counted_and_traced_when_its_reply_is_shown() -> None:
    notebook = Notebook()
    shown = asyncio.run(reported(make_slots(notebook), 0.05, overran=True))
    assert notebook.counted[-1] == ("overruns", "count", 1)
    (work, record) = notebook.spans
    assert work[2] >= shown, "the span ends with the work, not with the reply"
    assert record[1:] == (work[2], work[2])


def test_work_that_never_began_has_no_span() -> None:
    async def never() -> None:
        slot = slots.arrive("ada", SLOT)
        slot.abandon()
        slots.report(slot, "count")

    notebook = Notebook()
    slots = make_slots(notebook)
    asyncio.run(never())
    assert notebook.spans == []
