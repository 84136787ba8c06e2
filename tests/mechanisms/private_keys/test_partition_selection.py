"""Partition selection: its probabilities, its law over all neighbours, its price, its draws."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache, partial
from itertools import pairwise
from typing import Any

import pytest
from typing_extensions import override

from app.accounting import COMPOSITION_RULES
from app.accounting.losses import pure_loss
from app.accounting.units import ATTO, PICO
from app.errors import Invalid
from app.mechanisms.private_keys.keep_probability import ROWS_MAX, WHOLE, keep_table
from app.mechanisms.private_keys.partition_selection import PartitionRelease
from app.mechanisms.sampling.system import SystemRandom
from app.planning.plan import make_plan
from app.planning.request import Question
from app.queries.tally import KeyBatch
from tests.mechanisms.noise.noise_law import FALSE_ALARM, chi_square_tail
from tests.mechanisms.private_keys.key_law import Counts, coin_law, hockey_stick, neighbours
from tests.mechanisms.private_keys.key_releases import COLUMNS
from tests.queries.cards import card

NOISE = SystemRandom()
RELATIONS = pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
SLACK = Decimal("1e-30")


def release_of(
    privacy: dict[str, Any], relation: str = "add_remove", rows: int = 1, **more: Any
) -> PartitionRelease:
    body = {"dataset": "d", "query": {"kind": "keys", "column": "note"}, "privacy": privacy, **more}
    made = card(COLUMNS, neighbours=relation, rows_max=rows)
    release = make_plan(Question.model_validate(body), made).release
    assert isinstance(release, PartitionRelease)
    return release


# The table


def test_probabilities_are_those_of_the_recursion() -> None:
    """Desfontaines, Voss, Gipson and Mandayam (2022): epsilon 1, delta 1e-5, one group."""
    table = release_of({"epsilon": "1", "delta": "1e-5"}).table
    known = {
        1: 1e-5,
        2: 3.71828e-5,
        5: 8.5791e-4,
        10: 0.128183,
        11: 0.348448,
        12: 0.760311,
        15: 0.988072,
    }
    for persons, chance in known.items():
        assert table[persons] / WHOLE == pytest.approx(chance, rel=1e-5)
    assert table[0] == 0


TABLES = [
    (Fraction(1), 10**13, 1),
    (Fraction(1, 100), 10**9, 1),
    (Fraction(7, 3), ATTO // 10, 3),
    (Fraction(12), 10**6, 2),
    (Fraction(1, 10**6), ATTO // 1000, 1),
    (Fraction(40), 1000, 4),
]


@pytest.mark.parametrize(("epsilon", "delta", "keys"), TABLES)
def test_the_table_satisfies_every_inequality_and_could_hardly_be_larger(
    epsilon: Fraction, delta: int, keys: int
) -> None:
    """In integers: for neighbours n and n + 1, both outcomes, both directions."""
    table = keep_table(epsilon, delta, keys)
    assert table is not None
    chances = [*table, WHOLE]
    with localcontext() as context:
        context.prec = 120
        grown = (Decimal(epsilon.numerator) / epsilon.denominator).exp()
        delta_per_key = (1 - ((1 - Decimal(delta) / ATTO).ln() / keys).exp()) * WHOLE
        assert 1 - (1 - delta_per_key / WHOLE) ** keys <= Decimal(delta) / ATTO * (
            1 + Decimal("1e-90")
        )
        for n, (kept, more) in enumerate(pairwise(chances)):
            assert kept < more
            assert more <= grown * kept + delta_per_key, n
            assert WHOLE - kept <= grown * (WHOLE - more) + delta_per_key, n
            # One unit more would break one of the two inequalities.
            larger = more + 1
            breaks = (
                larger > WHOLE
                or larger > grown * kept + delta_per_key
                or WHOLE - kept > grown * (WHOLE - larger) + delta_per_key
            )
            assert breaks, n


def test_a_table_that_never_leaves_zero_or_never_ends_is_refused() -> None:
    assert keep_table(Fraction(1), 1, 1000) is None
    assert keep_table(Fraction(1, 10**9), 10**6, 1) is None
    longest = keep_table(Fraction(1, 5000), 10**10, 1)
    assert longest is not None
    assert 50_000 < len(longest) < ROWS_MAX


# The exact law, over all neighbours


def chances_of(release: PartitionRelease) -> list[Decimal]:
    with localcontext() as context:
        context.prec = 50
        return [Decimal(units) / WHOLE for units in release.table]


def worst(release: PartitionRelease, relation: str, rows: int, chances: list[Decimal]) -> Decimal:
    """Largest delta that any neighbours need.

    The law counts persons: a person is in a key or not, with any number of rows there. A person is
    in at most as many keys as they have rows.
    """
    law = cache(partial(coin_law, chances=chances))
    epsilon = Decimal(release.loss.epsilon) / PICO
    last = len(chances)
    half = sum(chance < Decimal("0.5") for chance in chances)
    some = {0, 1, half - 1, half, last - 2, last - 1}
    others = list(range(last + 1)) if rows == 1 else sorted(some)
    keys = "abcd"[: release.shape.keys + 1]
    pairs: dict[Any, tuple[Counts, Counts]] = {}
    for one, two in neighbours(relation, rows, others, keys):
        if all(abs(one[key] - two[key]) <= 1 for key in keys):
            moved = tuple(sorted((one[k], two[k]) for k in keys if one[k] != two[k]))
            pairs[moved] = one, two  # keys of equal count change nothing
    return max(hockey_stick(one, two, law, epsilon) for one, two in pairs.values())


CASES = [("1", "0.01"), ("0.5", "0.1"), ("3", "0.001")]


@RELATIONS
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_no_neighbours_need_more_than_was_charged(
    relation: str, rows: int, epsilon: str, delta: str
) -> None:
    release = release_of({"epsilon": epsilon, "delta": delta}, relation, rows)
    needed = worst(release, relation, rows, chances_of(release))
    charged = Decimal(release.loss.delta) / ATTO
    assert needed <= charged + SLACK
    assert needed > charged / 2  # the charge is at most twice the need


@RELATIONS
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_a_table_for_fewer_keys_is_caught(
    relation: str, rows: int, epsilon: str, delta: str
) -> None:
    """The planted bug assumes one key fewer per person, or half the epsilon for one key."""
    release = release_of({"epsilon": epsilon, "delta": delta}, relation, rows)
    keys = release.shape.keys
    fewer = Fraction(keys - 1) if keys > 1 else Fraction(1, 2)
    table = keep_table(Fraction(release.loss.epsilon, PICO) / fewer, release.loss.delta, 1)
    assert table is not None
    with localcontext() as context:
        context.prec = 50
        chances = [Decimal(units) / WHOLE for units in table]
    assert worst(release, relation, rows, chances) > Decimal(release.loss.delta) / ATTO


# The price


def test_the_price_is_epsilon_a_failure_and_the_curve_of_a_coin_per_key() -> None:
    one = release_of({"epsilon": "1", "delta": "1e-6"}).loss
    assert (one.epsilon, one.delta, one.pure, one.failure) == (PICO, 10**12, PICO, 10**12)
    assert one.curve == pure_loss(PICO).curve
    many = release_of({"epsilon": "1", "delta": "1e-6"}, "replace_one", 5).loss
    tenth = pure_loss(PICO // 10)
    assert many.rho <= 10 * tenth.rho
    assert all(a <= 10 * b for a, b in zip(many.curve, tenth.curve, strict=True))
    can = [name for name, rule in COMPOSITION_RULES.items() if rule.can_pay(rule.read(one))]
    assert can == ["approximate", "zcdp", "renyi", "gdp"]


def test_a_rho_buys_the_largest_epsilon_with_a_curve_within_it() -> None:
    for rows in (1, 3):
        release = release_of({"rho": "0.02", "delta": "1e-6"}, rows=rows)
        assert release.loss.rho <= PICO // 50
        more = Decimal(release.loss.epsilon + 10_000) / PICO
        assert release_of({"epsilon": more, "delta": "1e-6"}, rows=rows).loss.rho > PICO // 50


@pytest.mark.parametrize(
    ("privacy", "rows", "pointer"),
    [
        ({"epsilon": 1}, 1, "/privacy/delta"),
        ({"rho": 1}, 1, "/privacy/delta"),
        ({"half_width": 5, "delta": "1e-6"}, 1, "/privacy"),
        ({"epsilon": "1e-9", "delta": "1e-12"}, 1, "/privacy"),
        ({"epsilon": 1, "delta": "1e-18"}, 1000, "/privacy"),
        ({"epsilon": 2000000, "delta": "1e-6"}, 1, "/privacy/epsilon"),
    ],
)
def test_an_unsupported_question_names_its_field(
    privacy: dict[str, Any], rows: int, pointer: str
) -> None:
    with pytest.raises(Invalid) as refused:
        release_of(privacy, rows=rows)
    assert refused.value.fields[0].pointer == pointer


@pytest.mark.parametrize("kind", ["stability_histogram", "laplace", "exponential"])
def test_other_mechanisms_refuse_private_keys_by_name(kind: str) -> None:
    with pytest.raises(Invalid) as refused:
        release_of({"epsilon": 1, "delta": "1e-6"}, mechanism={"kind": kind})
    assert refused.value.fields[0].pointer == "/mechanism/kind"


# Draws


def batch(persons: list[int]) -> KeyBatch:
    return [(0, f"k{i:06}", count) for i, count in enumerate(persons)]


@pytest.mark.statistical
def test_keys_are_kept_with_the_probabilities_of_the_table() -> None:
    """30,000 keys of each number of persons; false alarms 1e-6.

    The same draws reject tables with an epsilon that is 10 % off.
    """
    release = release_of({"epsilon": "1", "delta": "0.01"})
    size = 30_000
    numbers = [n for n in range(1, len(release.table)) if 0.001 < release.table[n] / WHOLE < 0.999]
    kept = [sum(1 for _ in release.released(batch([n] * size), NOISE)) for n in numbers]

    def fit(table: Any) -> float:
        statistic = 0.0
        for n, count in zip(numbers, kept, strict=True):
            chance = table[n] / WHOLE if n < len(table) else 1.0 - 1e-9
            statistic += (count - size * chance) ** 2 / (size * chance * (1 - chance))
        return chi_square_tail(statistic, len(numbers) + len(numbers) % 2)

    assert fit(release.table) > FALSE_ALARM
    for wrong in ("0.9", "1.1"):
        assert fit(release_of({"epsilon": wrong, "delta": "0.01"}).table) < FALSE_ALARM


def test_a_random_word_below_the_probability_keeps_a_key_and_an_equal_one_does_not() -> None:
    release = release_of({"epsilon": "1", "delta": "1e-5"})

    class Planted(SystemRandom):
        word = 0

        @override
        def words(self, size: int) -> list[int]:
            return [self.word] * size

    noise = Planted()
    for n in (1, 5, 12):
        noise.word = release.table[n] - 1
        assert len(list(release.released(batch([n]), noise))) == 1
        noise.word = release.table[n]
        assert list(release.released(batch([n]), noise)) == []
    noise.word = WHOLE - 1
    sure = len(release.table)
    kept = release.released(batch([sure - 1, sure, 10**9]), noise)
    assert [text for _, text, _ in kept] == ["k000001", "k000002"]


def test_the_preview_shows_the_number_of_persons_from_which_keys_are_kept() -> None:
    release = release_of({"epsilon": "1", "delta": "1e-5"})
    error = release.expected_error(0.95)
    assert error.details == {"kept_from": 14, "surely_kept_from": len(release.table)}
    assert error.half_width is None
    assert release.table[13] / WHOLE < 0.95 <= release.table[14] / WHOLE
    assert math.isfinite(release.standard_deviations[0])


def test_only_texts_are_released() -> None:
    release = release_of({"epsilon": "1", "delta": "1e-5"})
    body = Question.model_validate(
        {"dataset": "d", "query": {"kind": "keys", "column": "note"}, "privacy": {"rho": 1}}
    )
    batches = iter([[(0, "b", 1000)], [(0, "a", 1000), (0, "c", 0)]])
    answer = release.answer(batches, NOISE, query=body.query, card=card(), confidence=0.95)
    assert answer == {"value": ["a", "b"], "interval": None}
