"""Votes of blocks: a changed block moves one vote, and the law of the answer."""

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import pytest

from app.data.card import Card
from app.mechanisms.post_processed import PostProcessedRelease
from app.mechanisms.sampling.system import SystemRandom
from app.planning.plan import make_plan
from app.queries.blocks.sample_aggregate import SampleAggregate
from app.queries.shapes.post_processed import PostProcessedShape
from app.queries.shapes.selection import SelectionShape
from tests.mechanisms.selection.selection_law import (
    Law,
    chi_square,
    exponential_law,
    permute_and_flip_law,
)
from tests.queries.blocks.aggregated_blocks import MODE
from tests.queries.cards import card, question


def voted(declared: Card) -> tuple[PostProcessedShape, SelectionShape]:
    query: dict[str, Any] = {"kind": "sample_aggregate", "statistic": MODE, "blocks": 4}
    asked = question(query).query
    assert isinstance(asked, SampleAggregate)
    shape = asked.shape(declared)
    assert isinstance(shape.inner, SelectionShape)
    return shape, shape.inner


def test_a_changed_block_moves_one_vote() -> None:
    """R is 2 for each block that a person changes; some votes of four blocks attain it."""
    for relation, changed in (("add_remove", 1), ("replace_one", 2)):
        assert voted(card(neighbours=relation))[1].score_range == 2 * changed
    shape, choice = voted(card())
    largest = 0
    for votes in product((None, 0, 1, 2), repeat=4):
        for other in (None, 0, 1, 2):
            counts = (
                [(block, vote) for block, vote in enumerate(each) if vote is not None]
                for each in (votes, (other, *votes[1:]))
            )
            scores = [choice.scores(shape.exact(each), 0) for each in counts]
            moves = [a - b for a, b in zip(*scores, strict=True)]
            largest = max(largest, max(moves) - min(moves))
    assert largest == 2


@pytest.mark.parametrize("law", [permute_and_flip_law, exponential_law])
def test_votes_lose_no_more_than_is_charged_and_half_the_range_is_caught(
    law: Callable[[Sequence[int], float], Law],
) -> None:
    """Compare all votes of four blocks for three categories with those after one changed block. The
    saboteur treats a changed block as one that appears."""

    def apart(score_range: int) -> float:
        def law_of_votes(votes: tuple[int | None, ...]) -> Law:
            return law([votes.count(category) for category in range(3)], 1 / score_range)

        return max(
            abs(math.log(p / q))
            for votes in product((None, 0, 1, 2), repeat=4)
            for other in (None, 0, 1, 2)
            for p, q in zip(law_of_votes(votes), law_of_votes((other, *votes[1:])), strict=True)
        )

    assert apart(2) <= 1 + 1e-9
    assert apart(1) > 1.2


def test_the_most_frequent_mode_is_drawn_by_its_law() -> None:
    """4,000 draws at epsilon 1 of votes 3, 1 and 0, in a chi-square test with a false alarm once in
    a million runs. The test rejects the law of half the range."""
    query = {"kind": "sample_aggregate", "statistic": MODE, "blocks": 4}
    made = make_plan(question(query, mechanism={"kind": "exponential"}), card())
    assert isinstance(made.release, PostProcessedRelease)
    exact = made.release.shape.exact([(0, 0), (1, 0), (2, 1), (3, 0)])
    noise = SystemRandom()
    drawn = [made.answer(exact, noise)["value"] for _ in range(4000)]
    counts = [drawn.count(city) for city in ("Bern", "Chur", "Zürich")]
    assert chi_square(counts, exponential_law([3, 1, 0], 1 / 2)) > 1e-6
    assert chi_square(counts, exponential_law([3, 1, 0], 1.0)) < 1e-6


def test_votes_that_one_person_could_not_change_are_released_exactly() -> None:
    """A lead of at most R = 2 votes is released with probability below delta; one of 200 always."""
    query = {"kind": "sample_aggregate", "statistic": MODE, "blocks": 200}
    privacy = {"epsilon": "1", "delta": "1e-6"}
    asked = question(query, privacy=privacy, mechanism={"kind": "stable_value"})
    made = make_plan(asked, card())
    assert isinstance(made.release, PostProcessedRelease)
    noise = SystemRandom()
    for ahead, status in ((200, "answered"), (101, "withheld")):
        counts = [(block, 2 if block < ahead else 0) for block in range(200)]
        answer = made.answer(made.release.shape.exact(counts), noise)
        assert answer.get("status", "answered") == status
        assert answer["value"] == ("Zürich" if status == "answered" else None)
