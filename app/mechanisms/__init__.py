"""Mechanisms that add noise to exact statistics: one file each, and their registry."""

from collections.abc import Callable

from app.mechanisms.learning import gradient_descent
from app.mechanisms.local import randomized_response
from app.mechanisms.noise import gaussian, laplace
from app.mechanisms.post_processed import PostProcessedRelease
from app.mechanisms.privacy_target import PrivacyTarget, UnsupportedShape
from app.mechanisms.private_keys import partition_selection, stability_histogram
from app.mechanisms.propose_test_release import noisy_bound, stable_value
from app.mechanisms.propose_test_release import propose_test_release as proposed_release
from app.mechanisms.release import Release
from app.mechanisms.selection import exponential, noisy_max, permute_and_flip
from app.mechanisms.smooth_sensitivity import rank_statistics as smooth_ranks
from app.mechanisms.smooth_sensitivity import scaled_release as smooth_release
from app.mechanisms.smooth_sensitivity import triangles as smooth_triangles
from app.queries.randomized_column import RandomizedShape
from app.queries.shapes.graphs import GraphShape
from app.queries.shapes.learning import LearningShape
from app.queries.shapes.post_processed import PostProcessedShape
from app.queries.shapes.private_keys import PrivateKeysShape
from app.queries.shapes.ranks.shape import RankShape
from app.queries.shapes.selection import SelectionShape
from app.queries.shapes.single_mean import MeanShape
from app.queries.shapes.sums import SumShape

AnyShape = (
    SumShape
    | SelectionShape
    | RankShape
    | MeanShape
    | GraphShape
    | PostProcessedShape
    | RandomizedShape
    | LearningShape
    | PrivateKeysShape
)
Prepare = Callable[[AnyShape, PrivacyTarget], Release]


def adds(prepare: Callable[[SumShape, PrivacyTarget], Release]) -> Prepare:
    """Wrap a mechanism that adds noise to measures."""

    def prepared(shape: AnyShape, target: PrivacyTarget) -> Release:
        if isinstance(shape, PostProcessedShape) and isinstance(shape.inner, SumShape):
            return PostProcessedRelease(prepare(shape.inner, target), shape)
        if not isinstance(shape, SumShape):
            raise UnsupportedShape(
                "it adds noise to numbers, and this query does not ask for numbers"
            )
        return prepare(shape, target)

    return prepared


def chooses(prepare: Callable[[SelectionShape, PrivacyTarget], Release]) -> Prepare:
    """Wrap a mechanism that selects one of several scored outcomes."""

    def prepared(shape: AnyShape, target: PrivacyTarget) -> Release:
        if isinstance(shape, PostProcessedShape) and isinstance(shape.inner, SelectionShape):
            return PostProcessedRelease(prepare(shape.inner, target), shape)
        if not isinstance(shape, SelectionShape):
            raise UnsupportedShape("it selects an outcome, and this query is answered with numbers")
        return prepare(shape, target)

    return prepared


def reports(prepare: Callable[[RandomizedShape, PrivacyTarget], Release]) -> Prepare:
    """Wrap a mechanism in which every row sends a randomised report."""

    def prepared(shape: AnyShape, target: PrivacyTarget) -> Release:
        if not isinstance(shape, RandomizedShape):
            raise UnsupportedShape(
                "it randomises each row's report, which only randomized_column uses"
            )
        return prepare(shape, target)

    return prepared


def learns(prepare: Callable[[LearningShape, PrivacyTarget], Release]) -> Prepare:
    """Wrap a mechanism that learns weights from rows, step by step."""

    def prepared(shape: AnyShape, target: PrivacyTarget) -> Release:
        if not isinstance(shape, LearningShape):
            raise UnsupportedShape(
                "it learns a regression step by step, and this query is no regression"
            )
        return prepare(shape, target)

    return prepared


def finds(prepare: Callable[[PrivateKeysShape, PrivacyTarget], Release]) -> Prepare:
    """Wrap a mechanism that releases keys which are not public."""

    def prepared(shape: AnyShape, target: PrivacyTarget) -> Release:
        if not isinstance(shape, PrivateKeysShape):
            raise UnsupportedShape("it releases private keys, and this query does not ask for keys")
        return prepare(shape, target)

    return prepared


def proposes(prepare: Callable[[RankShape | MeanShape, PrivacyTarget], Release]) -> Prepare:
    """Wrap a mechanism that tests a proposed bound on local sensitivity."""

    def prepared(shape: AnyShape, target: PrivacyTarget) -> Release:
        if not isinstance(shape, RankShape | MeanShape):
            raise UnsupportedShape(
                "it serves quantiles and a mean of a number column, without groups"
            )
        return prepare(shape, target)

    return prepared


def smooth(shape: AnyShape, target: PrivacyTarget) -> Release:
    """Prepare noise scaled to a smooth sensitivity."""
    if isinstance(shape, RankShape):
        return smooth_ranks.prepare(shape, target)
    if isinstance(shape, GraphShape):
        return smooth_triangles.prepare(shape, target)
    raise UnsupportedShape(
        "it serves triangle counts, and quantiles of an integer or number column"
    )


def bounds(prepare: Callable[[GraphShape, PrivacyTarget], Release]) -> Prepare:
    """Wrap a mechanism that releases a noisy bound on local sensitivity."""

    def prepared(shape: AnyShape, target: PrivacyTarget) -> Release:
        if not isinstance(shape, GraphShape):
            raise UnsupportedShape("it serves triangle counts only")
        return prepare(shape, target)

    return prepared


MECHANISMS: dict[str, Prepare] = {
    laplace.KIND: adds(laplace.prepare),
    gaussian.KIND: adds(gaussian.prepare),
    permute_and_flip.KIND: chooses(permute_and_flip.prepare),
    exponential.KIND: chooses(exponential.prepare),
    noisy_max.KIND: chooses(noisy_max.prepare),
    randomized_response.KIND: reports(randomized_response.prepare),
    gradient_descent.KIND: learns(gradient_descent.prepare),
    stability_histogram.KIND: finds(stability_histogram.prepare),
    partition_selection.KIND: finds(partition_selection.prepare),
    proposed_release.KIND: proposes(proposed_release.prepare),
    stable_value.KIND: chooses(stable_value.prepare),
    smooth_release.KIND: smooth,
    noisy_bound.KIND: bounds(noisy_bound.prepare),
}
