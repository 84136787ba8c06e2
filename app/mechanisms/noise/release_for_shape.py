"""Which release a shape's noise makes: one figure, several, sums of counts, or a fit to moments."""

from app.accounting.loss import Loss
from app.mechanisms.noise.additive import AdditiveRelease, Law, Part
from app.mechanisms.noise.aggregates import SeveralRelease
from app.mechanisms.noise.moments import MomentsRelease
from app.mechanisms.noise.workload import LinearRelease
from app.queries.shapes.sums import Shape


def release_of(
    law: Law, shape: Shape, parts: tuple[Part, ...], loss: Loss, theorem: str
) -> AdditiveRelease:
    kind = AdditiveRelease
    if shape.linear is not None:
        kind = LinearRelease
    elif shape.moments is not None:
        kind = MomentsRelease
    elif shape.several:
        kind = SeveralRelease
    return kind(law, shape, parts, loss, theorem)
