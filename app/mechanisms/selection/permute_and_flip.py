"""Permute-and-flip: outcomes in random order, each accepted with probability exp(-epsilon d / R).

Here d is the distance of an outcome's score to the best score, and R bounds how far one person can
move two scores apart. The first accepted outcome is the answer.

Theorem: McKenna and Sheldon (2020): epsilon-private, and its expected distance to the best is never
above the exponential mechanism's. Its distribution is that of the largest score after adding
exponential noise (Ding et al. 2021). So the range R takes the place of twice the sensitivity by the
argument in `noisy_max.py`. Unlike `exponential` it has no bounded range. So `zcdp`, `renyi` and
`gdp` accounts pay for it as for any pure mechanism, and `exponential` is cheaper in the first two.
"""

from app.accounting.curves.curve_units import pure_rho
from app.accounting.losses import repeated_loss
from app.mechanisms.privacy_target import PrivacyTarget
from app.mechanisms.selection import samplers
from app.mechanisms.selection.selection_release import (
    SelectionMechanism,
    SelectionRelease,
    prepare_by,
    tail_bound,
)
from app.queries.shapes.selection import SelectionShape

KIND = "permute_and_flip"
LAW = SelectionMechanism(
    kind=KIND,
    theorem="McKenna and Sheldon 2020 (permute-and-flip)",
    pick=samplers.permute_and_flip,
    loss=repeated_loss,
    rho=pure_rho,
    regret=tail_bound,
)


def prepare(shape: SelectionShape, target: PrivacyTarget) -> SelectionRelease:
    return prepare_by(LAW, shape, target)
