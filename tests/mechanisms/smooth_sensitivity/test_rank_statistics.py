"""The mechanism: its uses, its answers, the influence of one person, its reports.

Persons, filters and missing values are tested over all small tables of rows.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import pytest

from app.accounting.units import PICO
from app.data.card import Card
from app.errors import Invalid
from app.mechanisms.sampling.system import SystemRandom
from app.mechanisms.smooth_sensitivity.rank_bound import smooth_bound
from app.mechanisms.smooth_sensitivity.rank_statistics import NOISES, SmoothRelease, centre_of
from app.planning.plan import Plan, make_plan
from tests.effort import thorough_after
from tests.mechanisms.learning.rows_data import RowsData
from tests.queries.cards import card, question
from tests.queries.reference import Row

SMALL: list[dict[str, Any]] = [
    {"name": "age", "type": "integer", "low": 0, "high": 2},
    {"name": "member", "type": "boolean"},
]
SMOOTH: dict[str, Any] = {"kind": "smooth_sensitivity"}
WHERE = {"column": "member", "op": "==", "value": True}
KINDS: dict[str, dict[str, Any]] = {
    "median": {"kind": "median", "column": "age"},
    "quantile": {"kind": "quantile", "column": "age", "q": "0.3"},
    "min": {"kind": "min", "column": "age"},
    "max": {"kind": "max", "column": "age", "rank": 2},
    "iqr": {"kind": "iqr", "column": "age"},
}


def planned(query: dict[str, Any], made: Card, currency: str = "pure", **more: Any) -> Plan:
    more.setdefault("mechanism", SMOOTH)
    return make_plan(question(query, **more), made, frozenset({currency}))


def release_of(plan: Plan) -> SmoothRelease:
    assert isinstance(plan.release, SmoothRelease)
    return plan.release


# Influence of one person


Table = tuple[Row, ...]
ROWS: list[Row] = [{"age": a, "member": m} for a in (0, 1, 2, None) for m in (True, False)]


def tables(size: int, rows: list[Row]) -> Iterator[tuple[int, ...]]:
    return combinations_with_replacement(range(len(rows)), size)


def person_pairs(made: Card, rows: list[Row]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Pairs of tables, as indexes into `rows`, that differ by one person."""
    m = made.person.rows_max
    if made.neighbours == "replace_one":
        for size in (1, 3):
            for x in tables(size, rows):
                for i in range(size):
                    for other in range(len(rows)):
                        yield x, tuple(sorted((*x[:i], *x[i + 1 :], other)))
        return
    for size in range(4):
        for x in tables(size, rows):
            for count in range(1, m + 1):
                for added in tables(count, rows):
                    yield x, tuple(sorted((*x, *added)))


def worst(query: dict[str, Any], made: Card, beta: float, stolen: float = 1.0) -> tuple[float, ...]:
    """Largest change over S, and largest log-ratio of S over beta; optionally with a planted
    bug.
    """
    where = "where" in query
    rows = ROWS if where else [row for row in ROWS if row["member"]]
    mechanism = {**SMOOTH, "noise": "student_t", "beta": beta}
    release = release_of(planned(query, made, mechanism=mechanism))
    centres_and_bounds: dict[tuple[int, ...], tuple[Fraction, float]] = {}

    def at(x: tuple[int, ...]) -> tuple[Fraction, float]:
        if x not in centres_and_bounds:
            read = release.read(RowsData(made, [rows[i] for i in x]))
            smooth = smooth_bound(release.shape, read.windows, release.noise.beta)
            centres_and_bounds[x] = centre_of(release.shape, read), float(smooth) * stolen
        return centres_and_bounds[x]

    change = apart = 0.0
    for x, y in person_pairs(made, rows):
        (f, s), (g, t) = at(x), at(y)
        change = max(change, float(abs(f - g)) / min(s, t))
        apart = max(apart, abs(math.log(s / t)) / beta)
    return change, apart


PERSONS = {
    "rows": card(SMALL),
    "persons of two rows": card(SMALL, rows_max=2),
    "replaced rows": card(SMALL, neighbours="replace_one"),
}


@pytest.mark.parametrize("persons", PERSONS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("more", thorough_after(1, [{}, {"where": WHERE}, {"missing": 1}]))
def test_no_person_changes_more_than_the_bound(
    persons: str, kind: str, more: dict[str, Any]
) -> None:
    change, apart = worst({**KINDS[kind], **more}, PERSONS[persons], 0.3)
    assert change <= 1.0
    assert apart <= 1.0 + 1e-9


@pytest.mark.parametrize("beta", [0.05, 0.4])
def test_no_person_changes_a_trimmed_mean_by_more_than_the_bound(beta: float) -> None:
    query = {"kind": "trimmed_mean", "column": "age", "trim": "0.34"}
    change, apart = worst(query, PERSONS["replaced rows"], beta)
    assert change <= 1.0
    assert apart <= 1.0 + 1e-9


def test_a_bound_that_is_too_small_is_caught() -> None:
    for made in PERSONS.values():
        change, _ = worst(KINDS["median"], made, 0.3, stolen=0.2)
        assert change > 1.0


# Answers


def incomes(count: int) -> list[Row]:
    return [{"age": i % 100, "income": float(i), "member": i % 3 == 0} for i in range(count)]


@pytest.mark.parametrize("noise", list(NOISES))
def test_every_noise_answers_near_the_truth_if_it_is_small(noise: str) -> None:
    made = card(neighbours="replace_one")
    mechanism = {**SMOOTH, "noise": noise}
    privacy = {"epsilon": "60", "delta": "0.001"}
    query = {"kind": "median", "column": "income", "missing": 0}
    plan = planned(query, made, "approximate", mechanism=mechanism, privacy=privacy)
    read = plan.release.read(RowsData(made, incomes(501)))
    answers = [plan.answer(read, SystemRandom()) for _ in range(21)]
    assert all(answer["interval"] is None for answer in answers)
    middle = sorted(answer["value"] for answer in answers)[10]
    assert abs(middle - 250.0) < 30.0


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"kind": "median", "column": "income"}, 250.0),
        ({"kind": "quantile", "column": "income", "q": 0.9}, 450.0),
        ({"kind": "min", "column": "income", "rank": 11}, 10.0),
        ({"kind": "max", "column": "income", "rank": 11}, 490.0),
        ({"kind": "iqr", "column": "income"}, 250.0),
        ({"kind": "trimmed_mean", "column": "income", "trim": 0.1}, 250.0),
        ({"kind": "median", "column": "income", "where": WHERE}, 249.0),
    ],
)
def test_the_noise_is_added_to_the_statistic(query: dict[str, Any], expected: float) -> None:
    made = card(neighbours="replace_one")
    release = release_of(planned(query, made))
    centre = centre_of(release.shape, release.read(RowsData(made, incomes(501))))
    assert float(centre / 2**release.shape.grid_exponent) == pytest.approx(expected)


@pytest.mark.parametrize("kind", [*KINDS, "trimmed_mean"])
@pytest.mark.parametrize(
    "rows",
    [
        [],
        [{"age": None, "member": True}] * 3,
        [{"age": 7, "member": True}],
        [{"age": 100, "member": False}] * 50,
    ],
    ids=["none", "all missing", "one", "all the same"],
)
def test_degenerate_data_get_an_answer_within_the_bounds(kind: str, rows: list[Row]) -> None:
    made = card(neighbours="replace_one")
    query = KINDS.get(kind, {"kind": "trimmed_mean", "column": "age", "trim": "0.25"})
    plan = planned(query, made)
    answer = plan.answer(plan.release.read(RowsData(made, rows)), SystemRandom())
    assert 0.0 <= answer["value"] <= 100.0
    assert answer["interval"] is None


def test_answers_lie_on_the_declared_grid() -> None:
    for column in ("age", "income"):
        plan = planned({"kind": "median", "column": column}, card())
        read = plan.release.read(RowsData(card(), incomes(40)))
        grid = plan.mechanism["grid"]
        assert math.frexp(grid)[0] == 0.5
        for _ in range(20):
            value = plan.answer(read, SystemRandom())["value"]
            assert (Fraction(value) / Fraction(grid)).denominator == 1


# Defaults, charges and reports


@pytest.mark.parametrize("kind", ["median", "quantile", "min", "max"])
def test_a_choice_stays_the_default_and_smooth_sensitivity_is_an_alternative(kind: str) -> None:
    plan = make_plan(question(KINDS[kind]), card(), frozenset({"pure"}))
    assert plan.mechanism["kind"] == "permute_and_flip"
    assert release_of(planned(KINDS[kind], card())).noise.name == "student_t"


def test_smooth_sensitivity_answers_questions_that_no_choice_supports() -> None:
    for query in (KINDS["iqr"], {**KINDS["median"], "missing": 3}):
        assert make_plan(question(query), card()).mechanism["kind"] == "smooth_sensitivity"


def test_the_default_noise_is_one_the_account_can_pay() -> None:
    privacy = {"epsilon": "1", "delta": "1e-6"}
    pure = release_of(planned(KINDS["iqr"], card(), "pure", privacy=privacy))
    assert pure.loss.delta == 0
    assert pure.noise.name in ("student_t", "cauchy")
    some = release_of(planned(KINDS["iqr"], card(), "zcdp", privacy={"rho": "0.5"}))
    assert some.loss.rho <= PICO // 2
    names = {"student_t", "cauchy", "laplace_log_normal", "uniform_log_normal", "arsinh_normal"}
    assert some.noise.name in names


@pytest.mark.parametrize("noise", ["student_t", "cauchy"])
def test_pure_noise_is_charged_like_any_pure_mechanism(noise: str) -> None:
    loss = planned(KINDS["median"], card(), mechanism={**SMOOTH, "noise": noise}).loss
    assert (loss.epsilon, loss.pure, loss.delta, loss.failure) == (PICO, PICO, 0, 0)
    assert loss.rho == pytest.approx(math.tanh(0.5) * PICO, rel=1e-9)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_noise_with_a_delta_is_charged_that_delta(noise: str) -> None:
    privacy = {"epsilon": "1", "delta": "1e-6"}
    mechanism = {**SMOOTH, "noise": noise}
    loss = planned(KINDS["median"], card(), "renyi", mechanism=mechanism, privacy=privacy).loss
    assert (loss.epsilon, loss.delta, loss.pure, loss.failure) == (PICO, 10**12, PICO, 10**12)


@pytest.mark.parametrize("noise", ["laplace_log_normal", "uniform_log_normal", "arsinh_normal"])
def test_concentrated_noise_is_charged_its_rho(noise: str) -> None:
    mechanism = {**SMOOTH, "noise": noise}
    query = KINDS["median"]
    loss = planned(query, card(), "zcdp", mechanism=mechanism, privacy={"rho": "0.5"}).loss
    assert loss.rho == PICO // 2
    assert loss.failure == 0


def test_more_rows_per_person_change_the_bound_and_not_the_price() -> None:
    one = planned(KINDS["median"], card())
    two = planned(KINDS["median"], card(rows_max=2))
    assert one.loss == two.loss
    assert release_of(two).shape.moves == 2


def test_the_expected_error_is_public_and_says_what_is_not() -> None:
    plan = planned(KINDS["median"], card())
    error = plan.release.expected_error(0.95)
    assert error.half_width is None
    assert not error.promise
    assert "depends on the rows" in (error.reason or "")
    assert error.details["smooth_sensitivities"] > 1.0
    mechanism = {**SMOOTH, "noise": "student_t", "degrees": 2, "beta": 0.25}
    exact = planned(KINDS["median"], card(), mechanism=mechanism)
    sensitivities = exact.release.expected_error(0.95).details["smooth_sensitivities"]
    assert sensitivities == pytest.approx(5.0099585, rel=1e-7)


@pytest.mark.parametrize(
    ("query", "more", "pointer"),
    [
        ({**KINDS["median"], "candidates": [1, 2]}, {}, "/query/candidates"),
        (KINDS["median"], {"privacy": {"half_width": 3}}, "/privacy"),
        (KINDS["iqr"], {"privacy": {"half_width": 3}}, "/privacy"),
        (KINDS["median"], {"epsilon": "101"}, "/privacy/epsilon"),
        (KINDS["median"], {"privacy": {"rho": "5001"}}, "/privacy/rho"),
        (KINDS["median"], {"mechanism": {**SMOOTH, "noise": "laplace"}}, "/privacy"),
        (KINDS["median"], {"mechanism": {**SMOOTH, "gamma": 1}}, "/mechanism/gamma"),
        (
            KINDS["median"],
            {"mechanism": {**SMOOTH, "noise": "student_t", "gamma": 3}},
            "/mechanism/gamma",
        ),
        (
            KINDS["median"],
            {"mechanism": {**SMOOTH, "noise": "cauchy", "degrees": 3}},
            "/mechanism/degrees",
        ),
        (KINDS["median"], {"mechanism": {**SMOOTH, "beta": 1}}, "/mechanism/beta"),
        (KINDS["median"], {"mechanism": {**SMOOTH, "degrees": 2, "sigma": 1}}, "/mechanism/sigma"),
        (
            KINDS["median"],
            {
                "mechanism": {**SMOOTH, "noise": "laplace", "beta": 0.5},
                "privacy": {"epsilon": "1", "delta": "1e-6"},
            },
            "/mechanism/beta",
        ),
        (
            KINDS["median"],
            {
                "mechanism": {**SMOOTH, "noise": "gaussian", "beta": 0.5},
                "privacy": {"epsilon": "1", "delta": "1e-6"},
            },
            "/mechanism/beta",
        ),
        ({"kind": "count"}, {}, "/mechanism/kind"),
        ({"kind": "median", "column": "born"}, {}, "/mechanism/kind"),
        ({"kind": "iqr", "column": "city"}, {}, "/query/column"),
        ({"kind": "iqr", "column": "age", "missing": 101}, {}, "/query/missing"),
        ({"kind": "trimmed_mean", "column": "age", "trim": 0.1}, {}, "/query/kind"),
    ],
)
def test_an_unsupported_question_is_refused_by_name(
    query: dict[str, Any], more: dict[str, Any], pointer: str
) -> None:
    with pytest.raises(Invalid) as refused:
        planned(query, card(), **more)
    assert refused.value.fields[0].pointer == pointer


def test_a_trimmed_mean_needs_the_whole_table_with_one_row_per_person() -> None:
    query = {"kind": "trimmed_mean", "column": "age", "trim": "0.1"}
    with pytest.raises(Invalid) as refused:
        planned({**query, "where": WHERE}, card(neighbours="replace_one"))
    assert refused.value.fields[0].pointer == "/query/where"
    with pytest.raises(Invalid) as refused:
        planned(query, card(neighbours="replace_one", rows_max=1))
    assert refused.value.fields[0].pointer == "/query/kind"
    assert planned(query, card(neighbours="replace_one")).loss.epsilon == PICO
