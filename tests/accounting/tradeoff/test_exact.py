"""Curves of single releases are those of the best attack."""

from collections.abc import Callable

import mpmath
import pytest

from app.accounting.tradeoff.curve import (
    GUARD,
    GaussianTradeoff,
    LaplaceTradeoff,
    LeakyInputTradeoff,
    RandomizedResponseTradeoff,
    Single,
    tradeoff_of,
)
from tests.accounting.tradeoff.reference_curves import (
    ASKED,
    F,
    Reference,
    answers,
    gaussian,
    independent,
    laplace,
    leaky,
    neyman_pearson,
    rate,
    whole_laplace,
)

SINGLES: list[tuple[Single, Callable[[], Reference]]] = [
    *[
        (
            RandomizedResponseTradeoff(e, categories=k),
            lambda e=e, k=k: neyman_pearson(*answers(e, k)),
        )
        for e in (F("0.01"), F(1), F("5.5"), F(40))
        for k in (2, 3, 10)
    ],
    *[
        (
            RandomizedResponseTradeoff(e, repeats=k),
            lambda e=e, k=k: neyman_pearson(*independent(answers(e), k)),
        )
        for e in (F("0.01"), F(1), F(4))
        for k in (2, 3, 7)
    ],
    *[
        (
            RandomizedResponseTradeoff(F(1, 2), repeats=k, delta=d),
            lambda k=k, d=d: neyman_pearson(*independent(leaky(answers(F(1, 2)), d), k)),
        )
        for k in (1, 2, 3)
        for d in (F("1e-6"), F(1, 5))
    ],
    *[
        (LeakyInputTradeoff(d), lambda d=d: neyman_pearson(*leaky(([1], [1]), d)))
        for d in (F("1e-9"), F(1, 4), F(1))
    ],
    *[
        (LaplaceTradeoff(e, steps=d), lambda e=e, d=d: neyman_pearson(*whole_laplace(e, d)))
        for e in (F("0.01"), F(1), F(12))
        for d in (1, 2, 7, 40)
    ],
    *[(LaplaceTradeoff(e), lambda e=e: laplace(e)) for e in (F("0.01"), F("0.7"), F(3), F(30))],
    *[(GaussianTradeoff(m), lambda m=m: gaussian(m)) for m in (F("0.0001"), F(1, 4), F(1), F(49))],
]


def named(value: object) -> str | None:
    return repr(value) if isinstance(value, Single) else None


@pytest.mark.parametrize(("release", "best"), SINGLES, ids=named)
def test_a_single_release_has_the_curve_of_the_best_attack(
    release: Single, best: Callable[[], Reference]
) -> None:
    beta = best()
    curve = tradeoff_of(single=release, alphas=ASKED)
    assert curve.exact
    for alpha, found in zip(curve.alphas, curve.betas, strict=True):
        truth = beta(alpha)
        assert found <= truth, (alpha, rate(truth))
        assert found >= max(0, truth - 2 * mpmath.mpf(GUARD)), (alpha, rate(truth))
