"""How noise is put on exact statistics: one file for each mechanism, and the registry of them."""

from collections.abc import Callable

from app.mechanisms.learning import gradient_descent
from app.mechanisms.local import randomized_response
from app.mechanisms.noise import gaussian, laplace
from app.mechanisms.post_processed import DerivedRelease
from app.mechanisms.privacy_target import Asked, OtherShape
from app.mechanisms.private_keys import partition_selection, stability_histogram
from app.mechanisms.propose_test_release import noisy_bound, stable_value
from app.mechanisms.propose_test_release import release as propose_test_release
from app.mechanisms.release import Release
from app.mechanisms.selection import exponential, noisy_max, permute_and_flip
from app.mechanisms.smooth_sensitivity import rank_statistics as smooth_sensitivity
from app.mechanisms.smooth_sensitivity import release as smooth_release
from app.mechanisms.smooth_sensitivity import triangles as smooth_triangles
from app.queries.randomized_column import RandomizedShape
from app.queries.shapes.graphs import GraphShape
from app.queries.shapes.learning import GradientShape
from app.queries.shapes.post_processed import DerivedShape
from app.queries.shapes.private_keys import KeysShape
from app.queries.shapes.ranks.shape import OrderShape
from app.queries.shapes.selection import ChoiceShape
from app.queries.shapes.single_mean import MeanShape
from app.queries.shapes.sums import Shape

AnyShape = (
    Shape
    | ChoiceShape
    | OrderShape
    | MeanShape
    | GraphShape
    | DerivedShape
    | RandomizedShape
    | GradientShape
    | KeysShape
)
Prepare = Callable[[AnyShape, Asked], Release]


def adds(prepare: Callable[[Shape, Asked], Release]) -> Prepare:
    """A mechanism that adds noise to measures."""

    def prepared(shape: AnyShape, asked: Asked) -> Release:
        if isinstance(shape, DerivedShape) and isinstance(shape.inner, Shape):
            return DerivedRelease(prepare(shape.inner, asked), shape)
        if not isinstance(shape, Shape):
            raise OtherShape("it adds noise to numbers, and this question is not about such")
        return prepare(shape, asked)

    return prepared


def chooses(prepare: Callable[[ChoiceShape, Asked], Release]) -> Prepare:
    """A mechanism that chooses among scored outcomes."""

    def prepared(shape: AnyShape, asked: Asked) -> Release:
        if isinstance(shape, DerivedShape) and isinstance(shape.inner, ChoiceShape):
            return DerivedRelease(prepare(shape.inner, asked), shape)
        if not isinstance(shape, ChoiceShape):
            raise OtherShape("it chooses an outcome, and this question is answered by numbers")
        return prepare(shape, asked)

    return prepared


def reports(prepare: Callable[[RandomizedShape, Asked], Release]) -> Prepare:
    """A mechanism in which every row reports at random."""

    def prepared(shape: AnyShape, asked: Asked) -> Release:
        if not isinstance(shape, RandomizedShape):
            raise OtherShape("it makes rows report at random, which is for randomized_column")
        return prepare(shape, asked)

    return prepared


def learns(prepare: Callable[[GradientShape, Asked], Release]) -> Prepare:
    """A mechanism that learns weights from rows, step by step."""

    def prepared(shape: AnyShape, asked: Asked) -> Release:
        if not isinstance(shape, GradientShape):
            raise OtherShape("it learns a regression step by step, and this question is no such")
        return prepare(shape, asked)

    return prepared


def finds(prepare: Callable[[KeysShape, Asked], Release]) -> Prepare:
    """A mechanism that tells keys which are not public."""

    def prepared(shape: AnyShape, asked: Asked) -> Release:
        if not isinstance(shape, KeysShape):
            raise OtherShape("it tells private keys, and this question is not about such")
        return prepare(shape, asked)

    return prepared


def proposes(prepare: Callable[[OrderShape | MeanShape, Asked], Release]) -> Prepare:
    """A mechanism that is given a bound on local sensitivity."""

    def prepared(shape: AnyShape, asked: Asked) -> Release:
        if not isinstance(shape, OrderShape | MeanShape):
            raise OtherShape("it is for values at ranks and a mean, of numbers without groups")
        return prepare(shape, asked)

    return prepared


def smooth(shape: AnyShape, asked: Asked) -> Release:
    """Noise scaled to a smooth sensitivity."""
    if isinstance(shape, OrderShape):
        return smooth_sensitivity.prepare(shape, asked)
    if isinstance(shape, GraphShape):
        return smooth_triangles.prepare(shape, asked)
    raise OtherShape("it is for triangles and for values at ranks of an integer or number column")


def bounds(prepare: Callable[[GraphShape, Asked], Release]) -> Prepare:
    """A mechanism that tells a bound on local sensitivity."""

    def prepared(shape: AnyShape, asked: Asked) -> Release:
        if not isinstance(shape, GraphShape):
            raise OtherShape("it is for triangles")
        return prepare(shape, asked)

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
    propose_test_release.KIND: proposes(propose_test_release.prepare),
    stable_value.KIND: chooses(stable_value.prepare),
    smooth_release.KIND: smooth,
    noisy_bound.KIND: bounds(noisy_bound.prepare),
}
