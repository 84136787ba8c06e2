"""Which release a shape's noise makes: figures, sums of noisy counts, or a fit to noisy moments."""

from app.accounting.loss import Loss
from app.mechanisms.additive import AdditiveRelease, Law, Part
from app.mechanisms.linear import LinearRelease
from app.mechanisms.moments import MomentsRelease
from app.queries.shape import Shape


def release_of(
    law: Law, shape: Shape, parts: tuple[Part, ...], loss: Loss, theorem: str
) -> AdditiveRelease:
    kind = AdditiveRelease
    if shape.linear is not None:
        kind = LinearRelease
    elif shape.moments is not None:
        kind = MomentsRelease
    return kind(law, shape, parts, loss, theorem)
