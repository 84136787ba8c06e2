"""The tree counter: golden numbers, sensitivity and loss by brute force, draws by their law."""

import math
from decimal import Decimal
from fractions import Fraction
from itertools import product

import pytest

from app.accounting.curves.renyi_curves import pure_rho
from app.accounting.losses import pure_loss
from app.accounting.units import PICO
from app.errors import Invalid
from app.mechanisms.sampling.system import SystemRandom
from app.mechanisms.streams.tree_counter import TreeCounter, TreeNode, exact_counts, nodes, prepare
from tests.mechanisms.noise.noise_law import DRAWS, FALSE_ALARM, chi_square, lower_chance
from tests.queries.cards import card

HORIZON = 16


def counter(
    epochs_max: int = HORIZON,
    *,
    epsilon: str | None = None,
    rho: str | None = None,
    rows_max: int | None = None,
) -> TreeCounter:
    return prepare(
        card(rows_max=rows_max),
        epochs_max=epochs_max,
        epsilon=None if epsilon is None else Decimal(epsilon),
        rho=None if rho is None else Decimal(rho),
        delta=None,
    )[0]


# Golden numbers of the binary tree mechanism (Chan, Shi and Song 2011)


@pytest.mark.parametrize(("epoch", "variance"), [(1, 50), (7, 150), (8, 50), (13, 150), (16, 50)])
def test_variances_are_the_golden_ones(epoch: int, variance: int) -> None:
    made = counter(epsilon="1")
    assert 2 * made.scale**2 * len(nodes(epoch)) == variance
    gaussian = counter(rho="0.5")
    assert gaussian.scale**2 * len(nodes(epoch)) == pytest.approx(variance / 10, rel=1e-12)


@pytest.mark.parametrize(("epochs_max", "levels"), [(1, 1), (2, 2), (15, 4), (16, 5), (4096, 13)])
def test_the_number_of_levels_is_that_of_a_binary_tree(epochs_max: int, levels: int) -> None:
    assert counter(epochs_max, epsilon="1").levels == levels


def test_nodes_are_disjoint_runs_that_cover_every_prefix() -> None:
    for epoch in range(1, 200):
        parts = nodes(epoch)
        covered = [each for first, last in parts for each in range(first, last + 1)]
        assert covered == list(range(1, epoch + 1))
        assert len(parts) == epoch.bit_count()
        for first, last in parts:
            size = last - first + 1
            assert size & (size - 1) == 0
            assert (first - 1) % size == 0


# Sensitivity and loss


def every_node(epochs_max: int) -> list[TreeNode]:
    return sorted({node for epoch in range(1, epochs_max + 1) for node in nodes(epoch)})


@pytest.mark.parametrize("epochs_max", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_the_noise_hides_rows_in_any_epochs(epochs_max: int, rows: int) -> None:
    """Checked for all ways to spread a person's rows over the epochs.

    The exact loss of all nodes that can ever be released is at most the charge. The worst case
    comes near it.
    """
    made, charge = prepare(
        card(rows_max=rows), epochs_max=epochs_max, epsilon=Decimal(1), rho=None, delta=None
    )
    bell, price = prepare(
        card(rows_max=rows), epochs_max=epochs_max, epsilon=None, rho=Decimal(1), delta=None
    )
    all_nodes = every_node(epochs_max)
    worst = squares = Fraction(0)
    for places in product(range(1, epochs_max + 1), repeat=rows):
        moved = exact_counts(all_nodes, places.count)
        worst = max(worst, sum(moved) / Fraction(made.scale))
        squares = max(squares, sum(each**2 for each in moved) / (2 * Fraction(bell.scale) ** 2))
    assert worst <= Fraction(charge.pure, PICO) == 1
    assert squares <= Fraction(price.rho, PICO) <= 1
    if epochs_max & (epochs_max - 1) == 0:  # then an epoch is in a node of every level
        assert worst > Fraction(99, 100)
        assert squares > Fraction(99, 100)


def test_saboteur_noise_for_one_level_less_is_caught() -> None:
    made = counter(8, epsilon="1")
    less = Fraction(made.scale) * (made.levels - 1) / made.levels
    moved = exact_counts(every_node(8), (1,).count)
    assert sum(moved) / less > 1


def replaced_at(epoch: int, rows: int, epochs_max: int) -> tuple[int, int]:
    """Largest change of all released nodes by a person, in L1 and in squares.

    Nodes up to an epoch are drawn from some of their rows, and the others from any other rows.
    """
    drawn = {node for earlier in range(1, epoch + 1) for node in nodes(earlier)}
    before = sorted(drawn)
    after = [node for node in every_node(epochs_max) if node not in drawn]
    ways = product(range(1, epochs_max + 1), repeat=rows)
    moved = [(exact_counts(before, old.count), exact_counts(after, old.count)) for old in ways]
    most = [
        max(sum(earlier**power for earlier in part[side]) for part in moved)
        for power in (1, 2)
        for side in (0, 1)
    ]
    return most[0] + most[1], most[2] + most[3]


@pytest.mark.parametrize("epochs_max", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_rows_replaced_in_the_first_epoch_move_no_more_than_is_charged(
    epochs_max: int, rows: int
) -> None:
    """Checked for all ways to spread a person's old and new rows over the epochs.

    The bound for noise of scale h m is attained.
    """
    levels = epochs_max.bit_length()
    total, squares = replaced_at(1, rows, epochs_max)
    assert total <= levels * rows
    assert squares <= levels * rows**2
    if epochs_max & (epochs_max - 1) == 0:
        assert (total, squares) == (levels * rows, levels * rows**2)


def test_rows_replaced_later_would_move_more() -> None:
    """The saboteur declares rows anew after epochs were appended, which is refused."""
    total, squares = replaced_at(3, 1, 8)
    assert total > 4
    assert squares > 4


def test_the_curve_is_that_of_the_levels_and_below_that_of_one_release() -> None:
    _, loss = prepare(card(), epochs_max=16, epsilon=Decimal(1), rho=None, delta=None)
    whole = pure_loss(PICO)
    assert (loss.epsilon, loss.delta, loss.pure, loss.failure) == (PICO, 0, PICO, 0)
    assert loss.rho == math.ceil(5 * pure_rho(Decimal("0.2")) * PICO)
    assert all(a <= b for a, b in zip(loss.curve, whole.curve, strict=True))
    assert loss.mu_squared <= whole.mu_squared


def test_a_delta_beside_rho_gives_a_promise() -> None:
    tenth = Decimal("0.1")
    _, silent = prepare(card(), epochs_max=4, epsilon=None, rho=tenth, delta=None)
    _, promised = prepare(card(), epochs_max=4, epsilon=None, rho=tenth, delta=Decimal("1e-6"))
    assert silent.rho == promised.rho <= PICO // 10
    assert promised.delta == 10**12
    assert promised.epsilon < 3 * PICO < silent.epsilon


# Draws


@pytest.mark.statistical
def test_nodes_have_the_charged_noise_and_no_other() -> None:
    """False alarms: 1e-6. Scales a tenth off are rejected."""
    made = counter(4, epsilon="1.5")
    noise, chosen = SystemRandom(), nodes(3)
    draws: list[int] = []
    while len(draws) < DRAWS:
        noisy = made.draw(chosen, [100, 7], noise)
        draws += [noisy[chosen[0]] - 100, noisy[chosen[1]] - 7]
    assert chi_square(draws, made.scale) > FALSE_ALARM
    for off in (0.9, 1.1):
        assert chi_square(draws, made.scale * off) < FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize(
    "made", [counter(8, epsilon="1"), counter(8, rho="0.1")], ids=["laplace", "gaussian"]
)
def test_intervals_cover_the_truth_as_often_as_stated(made: TreeCounter) -> None:
    """2,000 counters up to epoch 7, at 0.9: fewer are covered than this bound with probability
    1e-6.
    """
    noise, parts = SystemRandom(), nodes(7)
    covered = 0
    for _ in range(2000):
        figure = made.figure(7, made.draw(parts, [5, 5, 5], noise), 0.9)
        covered += figure.low <= 15 <= figure.high
    assert lower_chance(2000, 2000 - covered, 1e-6) <= 0.1


def test_the_error_grows_with_the_logarithm_of_the_horizon() -> None:
    """The horizon has a thousand times the epochs; independent noise per epoch would be far
    more.
    """
    short, long = counter(4, epsilon="1"), counter(4095, epsilon="1")
    assert long.half_width(12, 0.95) < 20 * short.half_width(2, 0.95)


# Invalid input


def test_replace_one_is_refused() -> None:
    with pytest.raises(Invalid, match="/dataset"):
        prepare(
            card(neighbours="replace_one"),
            epochs_max=4,
            epsilon=Decimal(1),
            rho=None,
            delta=None,
        )


@pytest.mark.parametrize(
    ("epsilon", "rho", "rows_max"),
    [("1e6", None, None), (None, "9e6", None), ("1e-12", None, 100_000)],
)
def test_a_loss_without_feasible_noise_is_refused(
    epsilon: str | None, rho: str | None, rows_max: int | None
) -> None:
    with pytest.raises(Invalid, match="/privacy"):
        counter(4096, epsilon=epsilon, rho=rho, rows_max=rows_max)
