"""Terms: frozen at the grant, sound as a whole, refused by name, and attained by real charges."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting import COMPOSITION_RULES
from app.accounting.curves.orders import ORDERS, PLACES
from app.accounting.loss import Loss
from app.accounting.losses import (
    discrete_laplace_loss,
    gaussian_loss,
    laplace_loss,
    pure_loss,
    zcdp_loss,
)
from app.accounting.rules import curved as curve_rule
from app.accounting.rules.terms import AccountTerms, GrantTerms
from app.accounting.units import ATTO, PICO
from app.errors import BudgetExhausted, Invalid
from app.ledger.account import Account
from app.ledger.balance import Balance
from tests.effort import examples

DELTA = Decimal("1e-6")
ONE = GrantTerms(epsilon=Decimal(1), delta=DELTA)
CURVED = ["zcdp", "renyi", "gdp"]


def account(currency: str, wish: GrantTerms = ONE, terms: AccountTerms | None = None) -> Account:
    rule = COMPOSITION_RULES[currency]
    frozen = terms or rule.freeze(wish)
    return Account("b", "ann", "Ann", currency, frozen, Balance(rule.nothing), 1)


def admitted(now: Account, loss: Loss) -> int:
    """Number of charges admitted one by one until one is refused."""
    count = 0
    while True:
        try:
            now = now.admit(loss)
        except BudgetExhausted:
            return count
        count += 1


# How many questions fit at (1, 1e-6). The first number must be reached. The second is the limit of
# the exact non-adaptive composition, which no rule may exceed.
GAUSSIAN = gaussian_loss(Fraction(100))
DISCRETE = discrete_laplace_loss(PICO // 100, (Fraction(1),))
COUNTS = {
    ("renyi", "gaussian of 100"): (GAUSSIAN, 482, 487),
    ("zcdp", "gaussian of 100"): (GAUSSIAN, 487, 487),
    ("gdp", "gaussian of 100"): (GAUSSIAN, 560, 560),
    ("renyi", "discrete laplace of 0.01"): (DISCRETE, 487, 492),
    ("zcdp", "discrete laplace of 0.01"): (DISCRETE, 487, 487),
    ("gdp", "discrete laplace of 0.01"): (DISCRETE, 356, 356),
    ("renyi", "laplace of 0.01"): (laplace_loss(PICO // 100), 487, 492),
    ("zcdp", "laplace of 0.01"): (laplace_loss(PICO // 100), 488, 488),
    ("pure", "discrete laplace of 0.01"): (DISCRETE, 100, 100),
    ("approximate", "discrete laplace of 0.01"): (DISCRETE, 100, 100),
    ("renyi", "discrete laplace of 0.1"): (pure_loss(PICO // 10), 10, 10),
    ("zcdp", "discrete laplace of 0.1"): (pure_loss(PICO // 10), 10, 10),
    ("gdp", "discrete laplace of 0.1"): (pure_loss(PICO // 10), 10, 10),
}


@pytest.mark.parametrize("case", COUNTS, ids=" ".join)
def test_as_many_questions_fit_as_the_best_theorem_allows(case: tuple[str, str]) -> None:
    loss, least, most = COUNTS[case]
    now = account(case[0], GrantTerms(epsilon=Decimal(1)) if case[0] == "pure" else ONE)
    count = admitted(now, loss)
    assert least <= count <= most
    assert now.repeats_left(loss) == count


AT_THREE = {"renyi": (3671, 3701), "zcdp": (3701, 3701), "gdp": (4195, 4195)}


@pytest.mark.parametrize("currency", AT_THREE)
def test_the_published_number_fits_at_epsilon_3(currency: str) -> None:
    least, most = AT_THREE[currency]
    wish = GrantTerms(epsilon=Decimal(3), delta=DELTA)
    assert least <= account(currency, wish).repeats_left(GAUSSIAN) <= most


# The limits are sound: computed again, in floats, from the theorems


grants = st.builds(
    lambda e, d: GrantTerms(epsilon=Decimal(e) / 100, delta=Decimal(1).scaleb(-d)),
    st.integers(1, 2000),
    st.integers(2, 15),
)


@examples(40)
@given(grants)
def test_the_orders_of_a_renyi_account_share_one_delta(wish: GrantTerms) -> None:
    """The deltas admitted by the limits of all orders add up to the conversion's delta.

    With the whole delta for each order, forty times as much would be admitted.
    """
    terms = COMPOSITION_RULES["renyi"].freeze(wish)
    assert wish.epsilon is not None
    deltas = []
    for units, order in zip(terms.limits[2:], ORDERS, strict=True):
        if units >= 0:
            a, over = float(order), units / PICO - float(wish.epsilon)
            deltas.append(math.exp((a - 1) * over + a * math.log1p(-1 / a)) / (a - 1))
    assert sum(deltas) <= terms.conversion / ATTO * (1 + 1e-6)
    star = terms.limits[2 + PLACES[terms.order or ""]]
    if star >= 0:  # with little epsilon no order admits anything
        assert max(deltas) >= 0.9 * terms.conversion / ATTO, "one order must get most of it"
    assert terms.conversion + terms.limits[1] == terms.delta


@examples(25)
@given(grants)
def test_the_limit_of_a_zcdp_account_is_the_conversion_at_the_best_order(wish: GrantTerms) -> None:
    terms = COMPOSITION_RULES["zcdp"].freeze(wish)
    assert wish.epsilon is not None
    rho, log_delta = terms.limits[2] / PICO, math.log(terms.conversion / ATTO)

    def epsilon(order: float) -> float:
        return rho * order + math.log1p(-1 / order) - (log_delta + math.log(order)) / (order - 1)

    best = min(epsilon(1 + 1.02**k) for k in range(-200, 700))
    assert best <= float(wish.epsilon) * (1 + 1e-4) + 1e-9
    assert best >= float(wish.epsilon) * (1 - 1e-4) - 1e-6, "the limit must use nearly all of it"


def upper_tail(x: float) -> float:
    return math.erfc(x / math.sqrt(2)) / 2


@examples(25)
@given(grants)
def test_the_limit_of_a_gdp_account_stays_within_its_delta(wish: GrantTerms) -> None:
    terms = COMPOSITION_RULES["gdp"].freeze(wish)
    assert wish.epsilon is not None
    epsilon, mu = float(wish.epsilon), math.sqrt(terms.limits[2] / PICO)
    first = upper_tail(epsilon / mu - mu / 2)
    delta = first - math.exp(epsilon) * upper_tail(epsilon / mu + mu / 2)
    wanted = terms.conversion / ATTO
    assert abs(delta - wanted) <= wanted * 1e-5 + 1e-9 * first


@pytest.mark.parametrize(
    ("currency", "wish"),
    [
        ("zcdp", GrantTerms(rho=Decimal("0.02"), delta=DELTA)),
        ("gdp", GrantTerms(mu=Decimal("0.2"), delta=DELTA)),
    ],
)
def test_a_grant_in_native_units_promises_the_epsilon_that_converts_back_to_them(
    currency: str, wish: GrantTerms
) -> None:
    rule = COMPOSITION_RULES[currency]
    own = rule.freeze(wish)
    assert own.limits[2] == (20_000_000_000 if currency == "zcdp" else 40_000_000_000)
    again = rule.freeze(GrantTerms(epsilon=Decimal(own.epsilon) / PICO, delta=DELTA))
    assert 0 <= again.limits[2] - own.limits[2] <= own.limits[2] * 1e-6
    assert again.limits[:2] == own.limits[:2]


def test_a_failure_delta_reduces_the_delta_of_the_conversion() -> None:
    for currency in CURVED:
        rule = COMPOSITION_RULES[currency]
        usual = rule.freeze(ONE)
        assert usual.limits[1] == 10**9, "a thousandth is reserved for failures"
        more = rule.freeze(GrantTerms(epsilon=Decimal(1), delta=DELTA, failure_delta=DELTA / 2))
        assert (more.limits[1], more.conversion) == (5 * 10**11, 5 * 10**11)
        assert all(a <= b for a, b in zip(more.limits[2:], usual.limits[2:], strict=True))
        assert more.limits[2] < usual.limits[2] or currency == "renyi"


# Frozen


@pytest.mark.parametrize("currency", COMPOSITION_RULES)
def test_terms_are_written_and_read_unchanged(currency: str) -> None:
    wish = GrantTerms(epsilon=Decimal(1)) if currency == "pure" else ONE
    terms = COMPOSITION_RULES[currency].freeze(wish)
    assert AccountTerms.from_text(terms.text()) == terms
    assert AccountTerms.from_text(terms.text()).text() == terms.text()


@pytest.mark.parametrize("currency", CURVED)
def test_granted_terms_do_not_change_with_the_release(
    currency: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another release may weigh orders differently; accounts keep their terms."""
    text = COMPOSITION_RULES[currency].freeze(ONE).text()
    before = admitted(account(currency, terms=AccountTerms.from_text(text)), GAUSSIAN)
    monkeypatch.setattr(curve_rule, "STAR_WEIGHT", Decimal("0.3"))
    monkeypatch.setattr(curve_rule, "FAILURE_SHARE", 2)
    assert COMPOSITION_RULES[currency].freeze(ONE).text() != text, (
        "new grants would have other terms"
    )
    assert admitted(account(currency, terms=AccountTerms.from_text(text)), GAUSSIAN) == before


@examples(30)
@given(grants, st.integers(0, 2000))
def test_a_raised_limit_keeps_the_order_with_most_of_delta(
    wish: GrantTerms, hundredths: int
) -> None:
    rule = COMPOSITION_RULES["renyi"]
    before = rule.freeze(wish)
    assert wish.epsilon is not None
    raised = GrantTerms(epsilon=wish.epsilon + Decimal(hundredths) / 100, delta=wish.delta)
    after = rule.freeze(raised, star=before.order)
    assert after.order == before.order
    assert all(a >= b for a, b in zip(after.limits, before.limits, strict=True))
    lowered = rule.freeze(GrantTerms(epsilon=wish.epsilon / 2, delta=wish.delta), star=before.order)
    assert lowered.order == before.order
    assert all(a <= b for a, b in zip(lowered.limits, before.limits, strict=True))


def test_an_order_can_be_chosen_only_at_the_first_grant() -> None:
    rule = COMPOSITION_RULES["renyi"]
    chosen = GrantTerms(epsilon=Decimal(1), delta=DELTA, order=Decimal(41))
    terms = rule.freeze(chosen)
    assert terms.order == "41"
    assert rule.freeze(chosen, star="41") == terms
    with pytest.raises(Invalid) as caught:
        rule.freeze(chosen, star="22")
    assert [field.pointer for field in caught.value.fields] == ["/order"]


D = Decimal
REFUSED: dict[str, tuple[str, GrantTerms, str]] = {
    "pure without epsilon": ("pure", GrantTerms(), "/epsilon"),
    "pure with delta": ("pure", GrantTerms(epsilon=D(1), delta=DELTA), "/delta"),
    "pure with rho": ("pure", GrantTerms(epsilon=D(1), rho=D(1)), "/rho"),
    "pure with mu": ("pure", GrantTerms(epsilon=D(1), mu=D(1)), "/mu"),
    "pure with an order": ("pure", GrantTerms(epsilon=D(1), order=D(2)), "/order"),
    "pure with failures": ("pure", GrantTerms(epsilon=D(1), failure_delta=DELTA), "/failure_delta"),
    "approximate without delta": ("approximate", GrantTerms(epsilon=D(1)), "/delta"),
    "approximate with rho": ("approximate", GrantTerms(rho=D(1), delta=DELTA), "/rho"),
    "zcdp without delta": ("zcdp", GrantTerms(epsilon=D(1)), "/delta"),
    "zcdp with neither": ("zcdp", GrantTerms(delta=DELTA), "/epsilon"),
    "zcdp with both": ("zcdp", GrantTerms(epsilon=D(1), rho=D(1), delta=DELTA), "/epsilon"),
    "zcdp with mu": ("zcdp", GrantTerms(epsilon=D(1), mu=D(1), delta=DELTA), "/mu"),
    "zcdp with an order": ("zcdp", GrantTerms(epsilon=D(1), order=D(2), delta=DELTA), "/order"),
    "renyi without delta": ("renyi", GrantTerms(epsilon=D(1)), "/delta"),
    "renyi without epsilon": ("renyi", GrantTerms(delta=DELTA), "/epsilon"),
    "renyi with rho": ("renyi", GrantTerms(epsilon=D(1), rho=D(1), delta=DELTA), "/rho"),
    "renyi off the grid": (
        "renyi",
        GrantTerms(epsilon=D(1), order=D("2.1"), delta=DELTA),
        "/order",
    ),
    "gdp without delta": ("gdp", GrantTerms(epsilon=D(1)), "/delta"),
    "gdp with neither": ("gdp", GrantTerms(delta=DELTA), "/epsilon"),
    "gdp with both": ("gdp", GrantTerms(epsilon=D(1), mu=D(1), delta=DELTA), "/epsilon"),
    "gdp with rho": ("gdp", GrantTerms(epsilon=D(1), rho=D(1), delta=DELTA), "/rho"),
    "failures that are all of delta": (
        "zcdp",
        GrantTerms(epsilon=D(1), delta=DELTA, failure_delta=DELTA),
        "/failure_delta",
    ),
    "a mu beyond 64 bits": ("gdp", GrantTerms(mu=D(5000), delta=DELTA), "/mu"),
    "a mu far beyond": ("gdp", GrantTerms(mu=D(9_000_000), delta=DELTA), "/mu"),
    "a rho whose epsilon is beyond": ("zcdp", GrantTerms(rho=D(9_220_000), delta=DELTA), "/rho"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_grant_is_refused_by_the_name_of_its_field(what: str) -> None:
    currency, wish, pointer = REFUSED[what]
    with pytest.raises(Invalid) as caught:
        COMPOSITION_RULES[currency].freeze(wish)
    assert [field.pointer for field in caught.value.fields] == [pointer]


@pytest.mark.parametrize("currency", COMPOSITION_RULES)
def test_the_largest_epsilon_of_the_api_can_be_granted(currency: str) -> None:
    delta = D(0) if currency == "pure" else DELTA
    terms = COMPOSITION_RULES[currency].freeze(
        GrantTerms(epsilon=D("9223372.036854775807"), delta=delta)
    )
    assert terms.epsilon >= 2**63 - 2


def test_a_currency_that_cannot_pay_names_those_that_can() -> None:
    for loss, able in (
        (GAUSSIAN, "zcdp, renyi, gdp"),
        (zcdp_loss(Fraction(1, 50)), "zcdp, renyi"),
        (zcdp_loss(Fraction(1, 50), (PICO, 10**9)), "approximate, zcdp, renyi"),
    ):
        with pytest.raises(Invalid, match=f"currencies that can: {able}$"):
            account("pure", GrantTerms(epsilon=D(1))).admit(loss)
