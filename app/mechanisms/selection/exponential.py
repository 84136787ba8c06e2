"""Exponential mechanism: an outcome with probability in proportion to exp(epsilon score / R).

Theorem: McSherry and Talwar (2007), Theorem 6: epsilon-private. Dong, Durfee and Rogers (2020) with
Cesar and Rogers (2020): its log-ratio has range at most epsilon, so it is epsilon^2 / 8-zCDP, more
tightly `curves.bounded_range_rho`, and has the curve of `curves.bounded_range`. For a given rho it
may run at an epsilon slightly above sqrt(8 rho). Its distribution is that of the largest score
after adding Gumbel noise. k rounds without replacement are the k largest of one draw of such noise
(Durfee and Rogers 2019).
"""

from app.accounting.curves.curve_units import bounded_range_rho
from app.accounting.losses import bounded_range_loss
from app.mechanisms.privacy_target import PrivacyTarget
from app.mechanisms.selection import samplers
from app.mechanisms.selection.selection_release import (
    SelectionMechanism,
    SelectionRelease,
    prepare_by,
    tail_bound,
)
from app.queries.shapes.selection import SelectionShape

KIND = "exponential"
LAW = SelectionMechanism(
    kind=KIND,
    theorem="McSherry and Talwar 2007, Theorem 6; Dong, Durfee and Rogers 2020 (bounded range)",
    pick=samplers.exponential,
    loss=bounded_range_loss,
    rho=bounded_range_rho,
    regret=tail_bound,
)


def prepare(shape: SelectionShape, target: PrivacyTarget) -> SelectionRelease:
    return prepare_by(LAW, shape, target)
