"""Which release a shape's noise makes: one figure, several, sums of counts, or a fit to moments."""

from app.accounting.loss import Loss
from app.mechanisms.additive import AdditiveRelease, Law, Part
from app.mechanisms.linear import LinearRelease
from app.mechanisms.moments import MomentsRelease
from app.mechanisms.several import SeveralRelease
from app.queries.shape import Shape


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
