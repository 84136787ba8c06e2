"""Units: costs round up, limits round down, numbers are read and written exactly."""

import json
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.loss import Loss
from app.accounting.losses import gaussian_loss, generic_loss
from app.accounting.rules.spending import Spend, minus, plus
from app.accounting.units import (
    ATTO,
    PICO,
    UNITS_MAX,
    cost_units,
    exact_decimal,
    limit_units,
    wire,
)
from app.api.http.json_body import strict_json
from app.planning.request import exact_amount, exact_epsilon

units = st.integers(0, UNITS_MAX)
unit = st.sampled_from([PICO, ATTO])
amounts = st.decimals(0, 9_000_000, allow_nan=False, allow_infinity=False).map(abs)
long_texts = st.from_regex(r"[0-9]{1,6}\.[0-9]{1,52}", fullmatch=True)


@given(amounts | long_texts.map(Decimal), unit)
def test_costs_round_up_and_limits_round_down_by_less_than_a_unit(value: Decimal, of: int) -> None:
    exact = Fraction(value) * of
    assert 0 <= cost_units(value, of) - exact < 1
    assert 0 <= exact - limit_units(value, of) < 1


@given(units, unit)
def test_a_whole_number_of_units_is_not_rounded(count: int, of: int) -> None:
    value = Decimal(exact_decimal(count, of))
    assert Fraction(value) * of == count
    assert cost_units(value, of) == limit_units(value, of) == count


@given(units, unit)
def test_a_json_number_is_exact_or_has_the_exact_text_beside_it(count: int, of: int) -> None:
    sent = json.loads(json.dumps(wire("epsilon", count, of)), parse_float=Decimal)
    text = sent.get("epsilon_exact")
    said = Decimal(sent["epsilon"]) if text is None else Decimal(text)
    assert Fraction(said) * of == count
    assert set(sent) <= {"epsilon", "epsilon_exact"}
    if text is not None:
        assert "e" not in text.lower()
        assert Decimal(sent["epsilon"]) != Decimal(text)


@given(units, unit)
def test_a_json_number_sent_back_means_the_same(count: int, of: int) -> None:
    sent = strict_json(json.dumps(wire("x", count, of)).encode())
    value = sent.get("x_exact", sent["x"])
    if count:
        assert cost_units(exact_amount(value), of) == count


@given(st.integers(1, 10**15), st.integers(-18, 6))
def test_an_epsilon_is_the_same_from_a_json_number_and_from_text(digits: int, power: int) -> None:
    text = f"{digits}e{power - len(str(digits))}"
    try:
        expected = exact_epsilon(text)
    except ValueError:
        return
    assert expected == Decimal(text)
    assert exact_epsilon(strict_json(text.encode())) == expected


@pytest.mark.parametrize("text", ["0.1", "1e-1", "1E-1", "0.10", "1.0e-1", "0.1000000000000"])
def test_a_tenth_is_a_tenth_in_every_notation(text: str) -> None:
    for value in (text, strict_json(text.encode()), strict_json(f'"{text}"'.encode())):
        assert cost_units(exact_epsilon(value), PICO) == PICO // 10


def test_a_number_with_more_digits_than_a_float_is_exact_as_text_and_refused_as_a_number() -> None:
    """Two bodies that differ only in those digits would look equal after a JSON parser."""
    text = "0.1000000000000000055511151231257827"
    assert exact_epsilon(text) == Decimal(text)
    assert cost_units(exact_epsilon(text), PICO) == PICO // 10 + 1
    with pytest.raises(ValueError, match="decimal text"):
        exact_epsilon(strict_json(text.encode()))


@pytest.mark.parametrize(
    "value",
    [
        0,
        -1,
        "0",
        "-0.1",
        "0e5",
        True,
        None,
        [],
        {},
        "",
        "0,1",
        "NaN",
        "Infinity",
        "1e",
        "--1",
        "1_0",
        " 1",
        "٣",
        "0x1",
        "1" * 61,
        float("nan"),
        float("inf"),
        Decimal("NaN"),
        "1e-13",
        "9223373",
        10**30,
        "1e999999999999999999999",
        "1e-999999999999999999999",
        "1e400",
        5e-324,
    ],
)
def test_an_invalid_amount_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"number|zero|between"):
        exact_epsilon(value)


@pytest.mark.parametrize(
    "text", ["0.0", "-0.1", "1e-13", "1e-400", "1e-999999999999999999999", "9223373.5", "1e300"]
)
def test_an_invalid_amount_is_refused_from_json_too(text: str) -> None:
    with pytest.raises(ValueError, match=r"number|zero|between"):
        exact_epsilon(strict_json(text.encode()))


def test_the_smallest_and_the_largest_epsilon_fit() -> None:
    assert cost_units(exact_epsilon("1e-12"), PICO) == 1
    assert cost_units(exact_epsilon("9223372.036854775807"), PICO) == UNITS_MAX
    with pytest.raises(ValueError, match="between"):
        exact_epsilon("9223372.036854775808")


def test_amounts_have_their_known_texts() -> None:
    assert exact_decimal(1, PICO) == "0.000000000001"
    assert exact_decimal(PICO, PICO) == "1"
    assert exact_decimal(10 * PICO, PICO) == "10"
    assert exact_decimal(0, ATTO) == "0"
    assert wire("epsilon", PICO // 10, PICO) == {"epsilon": 0.1}
    assert wire("epsilon", UNITS_MAX, PICO)["epsilon_exact"] == "9223372.036854775807"


# Losses


@given(st.integers(-(2**70), 2**70), st.integers(-(2**70), 2**70))
def test_a_loss_is_never_negative_and_never_overflows(epsilon: int, delta: int) -> None:
    if 0 <= epsilon <= UNITS_MAX and 0 <= delta <= UNITS_MAX:
        assert Loss(epsilon, delta).epsilon == epsilon
    else:
        with pytest.raises(ValueError, match="64 bits"):
            Loss(epsilon, delta)


losses = st.builds(Loss, units, units)
small_losses = st.builds(Loss, st.integers(0, 2**61), st.integers(0, 2**61))


@given(losses, losses)
def test_a_sum_of_losses_is_exact_or_no_bound_at_all(a: Loss, b: Loss) -> None:
    epsilon, delta = min(a.epsilon + b.epsilon, UNITS_MAX), min(a.delta + b.delta, UNITS_MAX)
    assert a + b == b + a == Loss(epsilon, delta)


@given(losses, st.integers(1, 10**6))
def test_a_multiple_of_a_loss_is_the_sum_or_no_bound_at_all(a: Loss, count: int) -> None:
    epsilon, delta = min(a.epsilon * count, UNITS_MAX), min(a.delta * count, UNITS_MAX)
    assert a.times(count) == Loss(epsilon, delta)
    assert a.times(2) == a + a


spends = st.tuples(units, units)


@given(spends, spends)
def test_a_remainder_is_never_negative_and_never_above_the_total(a: Spend, b: Spend) -> None:
    left = minus(a, b)
    assert all(0 <= have <= had for have, had in zip(left, a, strict=True))
    if all(part <= had < UNITS_MAX for part, had in zip(b, a, strict=True)):
        assert plus(left, b) == a


@given(small_losses, small_losses, small_losses)
def test_losses_add_up_in_any_order(a: Loss, b: Loss, c: Loss) -> None:
    assert (a + b) + c == a + (b + c) == (c + a) + b


def test_a_loss_in_json_has_both_parts() -> None:
    both = generic_loss(PICO // 2, ATTO // 10**6)
    assert both.to_json() == {"epsilon": 0.5, "delta": 1e-6}
    gaussian = gaussian_loss(Fraction(10), (PICO // 2, ATTO // 10**6))
    assert gaussian.to_json() == {"epsilon": 0.5, "delta": 1e-6, "rho": 0.005}
    assert gaussian_loss(Fraction(10)).to_json() == {"epsilon": None, "delta": None, "rho": 0.005}
