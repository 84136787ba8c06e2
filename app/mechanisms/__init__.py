"""How noise is put on exact statistics: one file for each mechanism, and the registry of them."""

from collections.abc import Callable

from app.mechanisms import (
    exponential,
    gaussian,
    gradient_descent,
    laplace,
    noisy_max,
    permute_and_flip,
    randomized_response,
)
from app.mechanisms.asked import Asked, OtherShape
from app.mechanisms.gradient_descent import GradientRelease
from app.mechanisms.release import Release
from app.queries.choice_shape import ChoiceShape
from app.queries.gradient_shape import GradientShape
from app.queries.randomized_column import RandomizedShape
from app.queries.shape import Shape

AnyShape = Shape | ChoiceShape | RandomizedShape | GradientShape
AnyRelease = Release | GradientRelease  # answered from exact statistics, or from rows
Prepare = Callable[[AnyShape, Asked], AnyRelease]


def adds(prepare: Callable[[Shape, Asked], Release]) -> Prepare:
    """A mechanism that adds noise to measures."""

    def prepared(shape: AnyShape, asked: Asked) -> Release:
        if not isinstance(shape, Shape):
            raise OtherShape("it adds noise to numbers, and this question is not about such")
        return prepare(shape, asked)

    return prepared


def chooses(prepare: Callable[[ChoiceShape, Asked], Release]) -> Prepare:
    """A mechanism that chooses among scored outcomes."""

    def prepared(shape: AnyShape, asked: Asked) -> Release:
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


def learns(prepare: Callable[[GradientShape, Asked], GradientRelease]) -> Prepare:
    """A mechanism that learns weights from rows, step by step."""

    def prepared(shape: AnyShape, asked: Asked) -> AnyRelease:
        if not isinstance(shape, GradientShape):
            raise OtherShape("it learns a regression step by step, and this question is no such")
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
}
