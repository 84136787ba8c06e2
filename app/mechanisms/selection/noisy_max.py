"""Report noisy max: the outcome whose score is largest after independent noise, scale R / epsilon.

With exponential noise this is permute-and-flip, with Gumbel noise the exponential mechanism, and
their samplers are used. Laplace noise is discrete, on integer scores, with ties broken at random.

Theorem: Dwork and Roth (2014), Claim 3.9, with the range R in place of twice the sensitivity. If
one outcome's score with noise z is largest on x, then with noise z + R it is largest on x'. This
holds for any noise of the others and any order among ties, and P(Z >= z + R) >= exp(-epsilon) P(Z
>= z).
Error of Laplace noise: choose w such that N P(Z > w) <= alpha. Then no noise is above w and that of
the best not below -w, so the choice is at most 2 w below the best.

The largest noisy score is not released: it would be a second release.
"""

from dataclasses import replace

from app.accounting.curves.curve_units import pure_rho
from app.accounting.losses import repeated_loss
from app.mechanisms.noise import laplace
from app.mechanisms.privacy_target import CannotServe, PrivacyTarget
from app.mechanisms.selection import exponential, permute_and_flip, samplers
from app.mechanisms.selection.selection_release import (
    SelectionMechanism,
    SelectionRelease,
    prepare_by,
)
from app.queries.shapes.selection import SelectionShape

KIND = "noisy_max"


def laplace_bound(scale: float, outcomes: int, alpha: float) -> float:
    """Error bound of Laplace noise: P(|Z| > w) <= 2 alpha / N is P(Z > w) <= alpha / N."""
    return 2.0 * laplace.width(scale, 2.0 * alpha / outcomes)


LAWS = {
    "exponential": replace(permute_and_flip.LAW, kind=KIND, noise="exponential"),
    "gumbel": replace(exponential.LAW, kind=KIND, noise="gumbel"),
    "laplace": SelectionMechanism(
        kind=KIND,
        theorem="Dwork and Roth 2014, Claim 3.9 (report noisy max)",
        pick=samplers.laplace_noisy_max,
        loss=repeated_loss,
        rho=pure_rho,
        regret=laplace_bound,
        noise="laplace",
    ),
}


def prepare(shape: SelectionShape, target: PrivacyTarget) -> SelectionRelease:
    if target.noise is None:
        raise CannotServe("the query must name the noise of noisy_max")
    return prepare_by(LAWS[target.noise], shape, target)
