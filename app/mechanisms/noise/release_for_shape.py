"""Choice of the release class for a shape: one figure, several, sums of counts, or a fit."""

from app.accounting.loss import Loss
from app.mechanisms.noise.additive import AdditiveRelease, NoiseDistribution, NoisyMeasure
from app.mechanisms.noise.aggregates import AggregatesRelease
from app.mechanisms.noise.moments import MomentsRelease
from app.mechanisms.noise.workload import WorkloadRelease
from app.queries.shapes.sums import SumShape


def release_of(
    law: NoiseDistribution,
    shape: SumShape,
    parts: tuple[NoisyMeasure, ...],
    loss: Loss,
    theorem: str,
) -> AdditiveRelease:
    kind = AdditiveRelease
    if shape.linear is not None:
        kind = WorkloadRelease
    elif shape.moments is not None:
        kind = MomentsRelease
    elif shape.several:
        kind = AggregatesRelease
    return kind(law, shape, parts, loss, theorem)
