"""The public clock: slots depend only on arrivals, durations and analysts."""

import heapq
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.actions.scheduling.slot_clock import SlotClock, Ticket
from app.ledger.leaving import Leaving

Arrival = tuple[float, str, float]


def slots(arrivals: list[Arrival], lanes: int, *, late: float = 0.0) -> list[Ticket]:
    """The ticket of each arrival, once all have begun; the clock is read late by `late` seconds."""
    clock = SlotClock(lanes)
    tickets = []
    for now, analyst, seconds in arrivals:
        clock.advance(now)
        tickets.append(clock.arrive(now, analyst, seconds))
        clock.advance(now)
    now = arrivals[-1][0] if arrivals else 0.0
    while (at := clock.next_event(now)) is not None:
        now = at + late
        clock.advance(now)
    return tickets


arrivals = st.lists(
    st.tuples(
        st.integers(0, 20).map(float),
        st.sampled_from("abc"),
        st.integers(1, 8).map(float),
    ),
    min_size=1,
    max_size=30,
).map(lambda found: sorted(found, key=lambda each: each[0]))


@given(arrivals, st.integers(1, 4))
def test_every_slot_begins_after_its_arrival_and_lanes_never_overlap(
    found: list[Arrival], lanes: int
) -> None:
    made = slots(found, lanes)
    for ticket, (arrived, _, seconds) in zip(made, found, strict=True):
        assert ticket.begins is not None
        assert ticket.begins >= arrived
        assert ticket.ends == ticket.begins + seconds
    by_lane: dict[int, list[Ticket]] = {}
    for ticket in made:
        by_lane.setdefault(ticket.lane, []).append(ticket)
    for held in by_lane.values():
        held.sort(key=lambda each: (each.begins, each.ends))
        for one, other in pairwise(held):
            assert other.begins is not None
            assert one.ends <= other.begins


@given(arrivals, st.integers(1, 4))
def test_one_analyst_is_served_like_a_plain_queue(found: list[Arrival], lanes: int) -> None:
    """Compared with a short reference: first come, first served by the next free lane."""
    alone = [(arrived, "a", seconds) for arrived, _, seconds in found]
    free = [0.0] * lanes
    expected = []
    for arrived, _, seconds in alone:
        begins = max(heapq.heappop(free), arrived)
        heapq.heappush(free, begins + seconds)
        expected.append(begins)
    assert [ticket.begins for ticket in slots(alone, lanes)] == expected


@given(arrivals, st.integers(1, 4), st.floats(0.0, 0.9))
def test_a_clock_that_is_read_late_gives_the_same_slots(
    arrived: list[Arrival], lanes: int, late: float
) -> None:
    """An event loop that is busy with private work must not move any slot."""
    plain = [ticket.begins for ticket in slots(arrived, lanes)]
    assert [ticket.begins for ticket in slots(arrived, lanes, late=late)] == plain


def test_analysts_take_turns_with_any_number_of_questions() -> None:
    arrived = [(0.0, "busy", 1.0) for _ in range(60)] + [(0.5, "other", 1.0)]
    *_, other = slots(arrived, lanes=2)
    assert other.begins == 1.0
    alternating = [(0.0, "busy", 1.0)] * 3 + [(0.0, "other", 1.0)] * 3
    assert [ticket.begins for ticket in slots(alternating, lanes=1)] == [0, 1, 3, 2, 4, 5]


def test_a_withdrawn_question_takes_no_slot() -> None:
    clock = SlotClock(1)
    first, second, third = (clock.arrive(0.0, "a", 5.0) for _ in range(3))
    clock.advance(0.0)
    assert first.begins == 0.0
    assert clock.withdraw(second)
    assert not clock.withdraw(first)
    clock.advance(5.0)
    assert third.begins == 5.0


@pytest.mark.parametrize(
    ("seconds", "rung"), [(0.0, 0.3), (0.3, 0.3), (0.31, 0.6), (0.7, 1.2), (5.0, 9.6)]
)
def test_each_rung_of_the_ladder_is_twice_the_one_below(seconds: float, rung: float) -> None:
    assert Leaving(0.1, 0.3).rung(seconds) == pytest.approx(rung)


def test_a_queue_in_real_time_would_be_detected() -> None:
    """The clock must not do this: a lane that is busy as long as its work moves all later slots."""
    burst = [(0.0, "a", 0.1)] * 40
    public = [ticket.begins for ticket in slots(burst, lanes=2)]
    with_row, without_row = ([(0.0, "a", real)] * 40 for real in (0.051, 0.05))
    seen = [slots(real, lanes=2)[-1].begins for real in (with_row, without_row)]
    assert seen[0] != seen[1]
    assert public[-1] not in seen
