"""Every kind, field and mechanism of the interface description has its place in the client."""

import inspect
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from bursar import BadQuestion, Dataset, Question, col, grid, intervals, mechanisms
from bursar.ask.kinds import Kinds
from bursar.ask.question import GROUPED
from bursar.mechanisms import Mechanism

Json = dict[str, Any]
Built = Callable[[Dataset], Question]
# Fields that the client sets in another way than by a parameter of that name.
ELSEWHERE = {"kind", "where", "group_by"}

EXAMPLES: dict[str, Built] = {
    "aggregates": lambda d: d.aggregates("count", ("mean", "income"), ("variance", "age")),
    "cdf": lambda d: d.cdf("age", [0, 30, 60, 120], strategy="cells"),
    "count": lambda d: d.where(col.age.between(18, 64)).count().by("region"),
    "count_distinct": lambda d: d.count_distinct(groups_max=2).by("region"),
    "histogram": lambda d: d.histogram("age", range(0, 121, 20)),
    "iqr": lambda d: d.iqr("income", missing=0),
    "keys": lambda d: d.keys("occupation"),
    "linear_regression": lambda d: d.linear_regression("income", ["age", "sex"], ridge=1),
    "logistic_regression": lambda d: d.logistic_regression("home_owned", ["age"]),
    "max": lambda d: d.max("age", rank=5),
    "mean": lambda d: d.mean("income", per_person=(0, 50_000)).by(col.age.edges([0, 18, 120])),
    "median": lambda d: d.median("income", candidates=grid(0, 200_000, 101)),
    "min": lambda d: d.min("age", candidates=range(121)),
    "mode": lambda d: d.mode("region"),
    "prediction_variance": lambda d: d.prediction_variance(["age"], {"age": 40}, ridge=1.5),
    "price": lambda d: d.price("income", candidates=[10, 20.5]),
    "quantile": lambda d: d.quantile("income", "0.9", candidates=intervals([0, 1000, 200_000])),
    "randomized_column": lambda d: d.randomized_column("region", grid=(2, 2)),
    "ratio": lambda d: d.ratio(col.age >= 65, "income").by("sex"),
    "reciprocal": lambda d: d.reciprocal(),
    "sample_aggregate": lambda d: d.sample_aggregate(
        {"kind": "mean", "column": "income"}, 50, low=0, high=200_000
    ),
    "sum": lambda d: d.sum("income", groups_max=1),
    "top_k": lambda d: d.top_k("region", 2),
    "triangles": lambda d: d.triangles(),
    "trimmed_mean": lambda d: d.trimmed_mean("income", 0.1),
    "variance": lambda d: d.variance("age"),
    "workload": lambda d: d.workload({"old": col.age > 64, "north": col.region == "north"}),
}

MECHANISMS: list[Mechanism] = [
    mechanisms.laplace(),
    mechanisms.gaussian(),
    mechanisms.permute_and_flip(),
    mechanisms.exponential(),
    mechanisms.noisy_max(noise="gumbel"),
    mechanisms.randomized_response(),
    mechanisms.stability_histogram(),
    mechanisms.partition_selection(),
    mechanisms.noisy_bound(bound_share="0.3"),
    mechanisms.noisy_gradient_descent(steps=10, learning_rate=0.5),
    mechanisms.propose_test_release(bound=3.5, noise="laplace"),
    mechanisms.smooth_sensitivity(noise="student_t", degrees=3),
    mechanisms.stable_value(ordered=True),
]


def kinds_of(openapi: Json) -> dict[str, Json]:
    schemas = openapi["components"]["schemas"]
    mapping = schemas["Question"]["properties"]["query"]["discriminator"]["mapping"]
    return {kind: schemas[ref.rpartition("/")[2]] for kind, ref in mapping.items()}


def check_body(openapi: Json, schema: str, body: Json) -> None:
    document = {**openapi, "$ref": f"#/components/schemas/{schema}"}
    jsonschema.validate(body, document)


def test_every_kind_of_the_description_has_a_method(openapi: Json) -> None:
    assert set(EXAMPLES) == set(kinds_of(openapi))


def test_every_field_of_a_kind_is_a_parameter_of_its_method(openapi: Json) -> None:
    for kind, schema in kinds_of(openapi).items():
        parameters = set(inspect.signature(getattr(Kinds, kind)).parameters) - {"self"}
        assert parameters == set(schema["properties"]) - ELSEWHERE, kind


def test_the_kinds_that_the_server_groups_are_known(openapi: Json) -> None:
    assert {k for k, s in kinds_of(openapi).items() if "group_by" in s["properties"]} == GROUPED


@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_body_of_every_kind_fits_the_description(
    kind: str, census: Dataset, openapi: Json
) -> None:
    question = EXAMPLES[kind](census).at(epsilon="0.5", delta=1e-6)
    assert question.body()["query"]["kind"] == kind
    check_body(openapi, "Question", question.body())


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.body["kind"])
def test_the_body_of_every_mechanism_fits_the_description(
    mechanism: Mechanism, census: Dataset, openapi: Json
) -> None:
    check_body(openapi, "Question", census.count().at(rho=0.1, mechanism=mechanism).body())


def test_every_mechanism_and_setting_of_the_description_has_a_function(openapi: Json) -> None:
    schemas = openapi["components"]["schemas"]
    choices = schemas["Question"]["properties"]["mechanism"]["anyOf"][0]["discriminator"]["mapping"]
    assert {mechanism.body["kind"] for mechanism in MECHANISMS} == set(choices)
    for kind, ref in choices.items():
        name = ref.rpartition("/")[2]
        settings = set(inspect.signature(getattr(mechanisms, kind)).parameters)
        if name != "Mechanism":  # the others share one schema
            assert settings == set(schemas[name]["properties"]) - {"kind"}, kind


def test_a_price_is_exactly_one_of_three(census: Dataset) -> None:
    with pytest.raises(BadQuestion, match="exactly one of"):
        census.count().at(epsilon=0.1, within=5)
    with pytest.raises(BadQuestion, match="exactly one of"):
        census.count().body()
    body = census.count().at(within=50).body()
    assert body["privacy"] == {"half_width": 50, "confidence": 0.95}


def test_names_are_checked_before_anything_is_sent(census: Dataset) -> None:
    with pytest.raises(BadQuestion, match="no column 'regoin'; did you mean 'region'"):
        census.count().by("regoin")
    with pytest.raises(BadQuestion, match="did you mean 'income'"):
        census.mean("imcome")
    with pytest.raises(BadQuestion, match="Its columns are age"):
        census.mean("zzz")
    with pytest.raises(BadQuestion, match="about all rows"):
        census.where(col.age > 3).randomized_column("region")
    with pytest.raises(BadQuestion, match="WHERE in the text"):
        census.where(col.age > 3).sql("SELECT COUNT(*) FROM census")


def test_a_median_by_categories_is_asked_for_each_value(census: Dataset) -> None:
    question = census.where(col.age >= 18).median("income").by("region")
    bodies = question.at(epsilon=0.1)._bodies(None)
    values = [body["query"]["where"]["all"][1]["value"] for body in bodies]
    assert values == ["north", "south", "east", "west"]
    with pytest.raises(BadQuestion, match="by categories only"):
        census.median("income").by(col.age.edges([0, 18, 120]))
    with pytest.raises(BadQuestion, match="no list of values"):
        census.median("income").by("age")


def test_a_question_reads_like_a_sentence(census: Dataset) -> None:
    question = census.where(col.age >= 18).mean("income").by("region")
    assert str(question) == "mean of income where age >= 18 by region"
    assert "nothing asked yet" in repr(question)
