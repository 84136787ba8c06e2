"""Mistakes of a caller: one or two lines that say what is wrong, and never a raw traceback."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy
import pytest

import bursar
from bursar import BadQuestion, Dataset, NoLogin, Plan, col, mechanisms
from bursar.command.options import as_options

Mistake = Callable[[Dataset], Any]

MISTAKES: dict[str, tuple[Mistake, str]] = {
    "nan": (lambda d: col.age > float("nan"), "cannot compare with nan"),
    "infinity": (lambda d: col.age < float("inf"), "cannot compare with inf"),
    "decimal nan": (lambda d: col.age == Decimal("NaN"), "cannot compare with NaN"),
    "numpy nan": (lambda d: col.age.isin([numpy.float64("nan")]), "cannot compare with nan"),
    "array": (lambda d: col.age == numpy.array([1, 2]), "cannot compare with a ndarray"),
    "isin of a number": (lambda d: col.age.isin(5), "isin takes a list"),  # type: ignore[arg-type]
    "in a column": (lambda d: "north" in col.region, "'in' does not work"),
    "price nan": (lambda d: d.count().at(epsilon=float("nan")), "nan is no amount"),
    "price decimal": (lambda d: d.count().at(epsilon=Decimal("Infinity")), "is no amount"),
    "price true": (lambda d: d.count().at(rho=True), "True is no amount"),
    "price list": (lambda d: d.count().at(within=[1]), "is no amount"),  # type: ignore[arg-type]
    "edges": (lambda d: d.histogram("age", 5), "A list of values is needed, not 5"),  # type: ignore[arg-type]
    "edges of groups": (lambda d: col.age.edges(5), "edges takes a list"),  # type: ignore[arg-type]
    "group": (lambda d: d.count().by(3), "A group is a column"),  # type: ignore[arg-type]
    "features": (lambda d: d.linear_regression("income", "age"), "features is a list"),
    "point": (lambda d: d.prediction_variance(["age"], 5), "point has a value"),  # type: ignore[arg-type]
    "ratio": (lambda d: d.ratio(3), "a condition, or the name of a column"),  # type: ignore[arg-type]
    "key": (lambda d: d.count().ask(epsilon=1, key="a\nb"), "key is 1 to 255"),
    "empty key": (lambda d: d.count().ask(epsilon=1, key=""), "key is 1 to 255"),
    "mechanism": (
        lambda d: d.count().at(epsilon=1, mechanism=5),  # type: ignore[arg-type]
        "mechanism cannot be a int",
    ),
    "rows": (lambda d: d.mean("age").preview(epsilon=1, rows=2.5), "rows is a whole number"),  # type: ignore[arg-type]
    "method": (lambda d: d.cuont(), "A dataset has no 'cuont'; did you mean 'count'"),  # type: ignore[attr-defined]
    "question": (lambda d: d.count().aks(epsilon=1), "no 'aks'; did you mean 'ask'"),  # type: ignore[attr-defined]
    "function": (lambda d: getattr(mechanisms, "lap" + "lce"), "did you mean 'laplace'"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_or_two_lines(name: str, census: Dataset) -> None:
    mistake, text = MISTAKES[name]
    with pytest.raises(BadQuestion, match=text) as caught:
        mistake(census)
    assert len(str(caught.value).splitlines()) <= 2


def test_groups_may_be_a_list(census: Dataset) -> None:
    assert census.count().by(["region", "sex"]) == census.count().by("region", "sex")


def test_a_plan_of_a_list_is_refused(census: Dataset) -> None:
    with pytest.raises(BadQuestion, match="A plan takes questions"):
        Plan(([census.count()],), transport=None)  # type: ignore[arg-type]


def test_a_missing_name_is_an_attribute_error(census: Dataset) -> None:
    assert not hasattr(census, "cuont")
    assert not hasattr(census.count(), "_ipython_display_")
    assert not hasattr(mechanisms, "__path__")
    with pytest.raises(AttributeError, match="did you mean 'count'"):
        census.conut()  # type: ignore[attr-defined]


def test_a_misspelt_argument_names_the_nearest(census: Dataset) -> None:
    for method in (census.count().ask, census.count().preview, census.count().rehearse):
        with pytest.raises(TypeError, match="'epsilom'; did you mean 'epsilon'"):
            method(epsilom=1)  # type: ignore[call-arg]


def test_numbers_of_other_packages_are_numbers(census: Dataset) -> None:
    body = census.count().at(epsilon=Fraction(1, 4)).body()
    assert body["privacy"] == {"epsilon": 0.25}
    assert census.count().at(rho=numpy.float32(0.5)).body()["privacy"] == {"rho": 0.5}
    assert census.count().at(within=numpy.int64(5)).body()["privacy"]["half_width"] == 5
    assert census.count().at(epsilon=Decimal("0.10")).body()["privacy"] == {"epsilon": "0.10"}
    assert (col.age >= Fraction(1, 2)).body == {"column": "age", "op": ">=", "value": 0.5}  # type: ignore[operator]
    assert (col.age == numpy.int8(4)).body == {"column": "age", "op": "==", "value": 4}


@pytest.mark.parametrize(
    "url", ["http://[::1", "http://a b", "http://127.0.0.1:99999", "http://", "http://\n"]
)
def test_an_invalid_address_is_named(url: str) -> None:
    with pytest.raises((NoLogin, bursar.Unreachable)) as caught:
        bursar.connect(url, "key", state=None).datasets()
    assert len(str(caught.value).splitlines()) <= 2


@pytest.mark.parametrize("key", ["schlüssel", "bursar_\nx", "bursar_…"])
def test_a_key_with_other_characters_is_refused(key: str) -> None:
    with pytest.raises(NoLogin, match="characters that no key has"):
        bursar.connect("http://127.0.0.1:9", key, state=None)


def test_a_dataset_has_a_name() -> None:
    with (
        bursar.connect("http://127.0.0.1:9", "key", state=None) as b,
        pytest.raises(BadQuestion, match="A dataset has a name, not a int"),
    ):
        b[1]  # type: ignore[index]


def test_a_body_that_is_not_json_is_refused() -> None:
    body = {"dataset": "census", "query": {"kind": "count"}, "privacy": {"epsilon": float("nan")}}
    with (
        bursar.connect("http://127.0.0.1:9", "key", state=None) as b,
        pytest.raises(BadQuestion, match="JSON"),
    ):
        b.ask_body(body)


def test_the_largest_epsilon_that_is_shown_can_be_asked() -> None:
    for largest, shown in {2.635058831077: "2.63505", 3.0: "3", 1e-7: "0.0000001"}.items():
        members = {"type": "/problems/budget-exhausted", "largest_epsilon": largest}
        error = bursar.BudgetExhausted(402, members)
        assert str(error).endswith(f"epsilon={shown}")


def test_texts_of_the_command_name_its_options() -> None:
    assert as_options("The most you can ask for now: epsilon=1.72506") == (
        "The most you can ask for now: --epsilon 1.72506"
    )
    assert as_options("Give exactly one of epsilon=0.1, rho=0.01 and within=50.") == (
        "Give exactly one of --epsilon 0.1, --rho 0.01 and --within 50."
    )
    assert as_options("Say rows=N to get an estimate.") == "Say --rows N to get an estimate."
