"""A question about two neighbouring tables, and numbers that are read from its answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.server import Json

Read = Callable[[Json], float]
Rows = tuple[tuple[Any, ...], ...]


def row(
    age: object = 30, income: object = 1000, region: str = "north", smoker: str = "true"
) -> Any:
    return age, income, region, smoker


# Statistics of an answer: one number, whose large and small values are the events


def value(answer: Json) -> float:
    return float(answer["value"])


def first(answer: Json) -> float:
    return float(answer["value"][0]["value"])


def first_less_second(answer: Json) -> float:
    return float(answer["value"][0]["value"] - answer["value"][1]["value"])


def count_and_sum(answer: Json) -> float:
    """Both aggregates, each divided by the contribution of one row."""
    return float(answer["value"][0]["value"] + answer["value"][1]["value"] / 120)


def reported(answer: Json) -> float:
    return float(answer["value"][0]["reported"])


def south_before_north(answer: Json) -> float:
    places = [*answer["value"], "south", "north"]
    return float(places.index("north") - places.index("south"))


def moments(answer: Json) -> float:
    """Three of the five moments that one row moves.

    With such a large ridge, the slope is the sum of products over the ridge. The intercept is the
    sum of outcomes over the number of rows.
    """
    fit = answer["value"]
    intercept, slope = (item["value"] for item in fit["coefficients"])
    rows = fit["rows"]["value"]
    outcomes = (intercept - 60.0) / 60.0 * max(rows, 1)
    products = slope * RIDGE
    return float(rows + min(max(outcomes, -50.0), 50.0) + min(max(products, -50.0), 50.0))


@dataclass(frozen=True)
class Case:
    """A question, two neighbouring tables, and the requested loss."""

    query: Json
    mechanism: Json
    one: Rows
    other: Rows
    read: Read
    neighbours: str = "add_remove"
    loss: str = "1.5"  # epsilon, or rho for Gaussian noise

    @property
    def privacy(self) -> Json:
        return {"rho" if self.by_rho else "epsilon": self.loss}

    @property
    def by_rho(self) -> bool:
        return self.mechanism["kind"] == "gaussian" or "normal" in self.mechanism.get("noise", "")


RIDGE = 1e12
