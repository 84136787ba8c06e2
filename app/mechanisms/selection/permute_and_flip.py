"""Permute-and-flip: outcomes in random order, each accepted with probability exp(-epsilon d / R).

Theorem: McKenna and Sheldon (2020): epsilon-private, and its expected distance to the best is never
above the exponential mechanism's. Its distribution is that of the largest score after adding
exponential noise (Ding et al. 2021). So the range R takes the place of twice the sensitivity by the
argument in `noisy_max.py`. It is not of bounded range: accounts that follow curves pay for it as
for any pure mechanism, and use `exponential` instead.
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
