"""Every audited question: its two neighbouring tables, mechanism and loss."""

from collections.abc import Iterator

from tests.end_to_end.audits.audit_case import (
    RIDGE,
    Case,
    Read,
    Rows,
    count_and_sum,
    first,
    first_less_second,
    moments,
    reported,
    row,
    south_before_north,
    value,
)
from tests.server import Json

FEW = (row(20), row(90, region="south"), row())
MANY = (row(5),) * 20 + (row(80),) * 20
NORTH, SOUTH = row(smoker="true"), row(region="south", smoker="false")
IN_NORTH: Json = {"column": "region", "op": "==", "value": "north"}
OF_BLOCKS: Json = {
    "kind": "sample_aggregate",
    "statistic": {"kind": "max", "column": "age"},
    "blocks": 2,
    "low": 0,
    "high": 120,
}
ADDED: dict[str, tuple[Json, Rows, Rows, Read]] = {
    "count": ({"kind": "count"}, FEW, (*FEW, row()), value),
    "sum": ({"kind": "sum", "column": "age"}, FEW, (*FEW, row(120)), value),
    "aggregates": (
        {"kind": "aggregates", "of": [{"kind": "count"}, {"kind": "sum", "column": "age"}]},
        FEW,
        (*FEW, row(120)),
        count_and_sum,
    ),
    "variance": (
        {"kind": "variance", "column": "age"},
        (row(60), row(60)),
        (row(60), row(60), row(120)),
        value,
    ),
    "ratio of sums": (
        {
            "kind": "ratio",
            "numerator": {"column": "age"},
            "denominator": {"column": "household"},
        },
        (row(0),) * 3,
        ((*row(120), 2),) + (row(0),) * 3,
        value,
    ),
    "ratio of the added": (
        {"kind": "ratio", "numerator": {"where": IN_NORTH}},
        (SOUTH,) * 4,
        (*(SOUTH,) * 4, NORTH),
        value,
    ),
    "reciprocal": ({"kind": "reciprocal"}, MANY, (*MANY, row(1)), value),
    "workload": (
        {
            "kind": "workload",
            "predicates": [
                {"name": "north", "where": IN_NORTH},
                {"name": "all", "where": {"all": []}},
            ],
        },
        FEW,
        (*FEW, NORTH),
        first,
    ),
    "cdf": (
        {"kind": "cdf", "column": "age", "edges": [0, 60, 120], "strategy": "cells"},
        MANY,
        (*MANY, row(5)),
        first,
    ),
    "prediction_variance": (
        {
            "kind": "prediction_variance",
            "features": ["age"],
            "point": {"age": 120},
            "ridge": 0.1,
        },
        (),
        (row(120),),
        value,
    ),
    "sample_aggregate": (
        {**OF_BLOCKS, "aggregate": "mean"},
        (row(0),) * 20,
        ((row(0),) * 20 + (row(120),)),
        value,
    ),
    "linear_regression": (
        {
            "kind": "linear_regression",
            "outcome": "age",
            "features": ["smoker"],
            "ridge": RIDGE,
        },
        (),
        (row(120),),
        moments,
    ),
}
REPLACED: dict[str, tuple[Json, Rows, Rows, Read]] = {
    "mean": (
        {"kind": "mean", "column": "age"},
        (*FEW, row(0)),
        (*FEW, row(120)),
        value,
    ),
    "ratio": (
        {"kind": "ratio", "numerator": {"where": IN_NORTH}},
        (SOUTH, NORTH),
        (SOUTH, SOUTH),
        value,
    ),
    "histogram": (
        {"kind": "histogram", "column": "region"},
        (*FEW, NORTH),
        (*FEW, SOUTH),
        first_less_second,
    ),
}


# One row raises one score and lowers the other, so the better one becomes the worse.
UPPER, LOWER = (row(0), row(50), row(120), row(120)), (row(0), row(0), row(50), row(120))
CHOSEN: dict[str, tuple[Json, Rows, Rows, Read]] = {
    "mode": ({"kind": "mode", "column": "smoker"}, (NORTH,), (SOUTH,), value),
    "top_k": (
        {"kind": "top_k", "column": "region", "k": 2},
        (NORTH,),
        (SOUTH,),
        south_before_north,
    ),
    "quantile": (
        {"kind": "quantile", "column": "age", "q": 0.5, "candidates": [10, 110]},
        UPPER,
        LOWER,
        value,
    ),
    "median": (
        {"kind": "median", "column": "age", "candidates": [10, 110]},
        UPPER,
        LOWER,
        value,
    ),
    "min": (
        {"kind": "min", "column": "age", "rank": 1, "candidates": [10, 110]},
        (row(50), row(120)),
        (row(0), row(50)),
        value,
    ),
    "max": (
        {"kind": "max", "column": "age", "rank": 1, "candidates": [10, 110]},
        (row(50), row(120)),
        (row(0), row(50)),
        value,
    ),
    "sample_aggregate": (
        OF_BLOCKS,
        (row(0),) * 20,
        (row(0),) * 19 + (row(120),),
        value,
    ),
    "price": (
        {"kind": "price", "column": "age", "candidates": [1, 120]},
        (row(0),),
        (row(120),),
        value,
    ),
}
REPORTED: dict[str, tuple[Json, Rows, Rows, Read]] = {
    "randomized_column": (
        {"kind": "randomized_column", "column": "smoker", "missing": False},
        (NORTH,),
        (SOUTH,),
        reported,
    ),
    "randomized_column on a grid": (
        {
            "kind": "randomized_column",
            "column": "region",
            "missing": "north",
            "grid": {"rows": 2, "columns": 2},
        },
        (row(region="north"),),
        (row(region="west"),),
        reported,
    ),
}


# Values at ranks: half of the rows are at either bound, so one row moves the value from one bound
# to the other. The smooth sensitivity is equal on both sides, or smaller by the factor that beta
# allows.
ENDS = (row(0),) * 3 + (row(120),) * 3
SPLIT = (row(0),) * 5 + (row(120),) * 2
SMOOTH: dict[str, tuple[Json, Rows, Rows, Read]] = {
    "median": ({"kind": "median", "column": "age"}, ENDS, (*ENDS, row(120)), value),
    "median of a smaller scale": (
        {"kind": "median", "column": "age"},
        (row(0),) * 9,
        (row(0),) * 9 + (row(120),),
        value,
    ),
    "max": ({"kind": "max", "column": "age"}, (row(0),) * 4, (*(row(0),) * 4, row(120)), value),
    "iqr": ({"kind": "iqr", "column": "age"}, SPLIT[:-1], SPLIT, value),
}
SMOOTH_REPLACED: dict[str, tuple[Json, Rows, Rows, Read]] = {
    "median of rows replaced": (
        {"kind": "median", "column": "age", "missing": 0},
        (*ENDS, row(0)),
        (*ENDS, row(120)),
        value,
    ),
    "trimmed_mean": (
        {"kind": "trimmed_mean", "column": "age", "trim": "0.34"},
        (row(0), row(0), row(120)),
        (row(0), row(120), row(120)),
        value,
    ),
}


# Heavy tails show little of a shift, so these ask for more loss. Normal noise is priced by rho.
SCALED: dict[str, tuple[str, ...]] = {
    "student_t": (*SMOOTH, *SMOOTH_REPLACED),
    "cauchy": ("median of rows replaced",),
    "uniform_log_normal": ("median",),
    "laplace_log_normal": ("median",),
    "arsinh_normal": ("median",),
}
CHOOSERS: dict[str, Json] = {
    "permute_and_flip": {"kind": "permute_and_flip"},
    "exponential": {"kind": "exponential"},
    "noisy_max-exponential": {"kind": "noisy_max", "noise": "exponential"},
    "noisy_max-laplace": {"kind": "noisy_max", "noise": "laplace"},
    "noisy_max-gumbel": {"kind": "noisy_max", "noise": "gumbel"},
}


# An answer made of several measurements shows little of each, so these ask for more loss.
LOSSES: dict[str, dict[str, str]] = {
    "laplace": {
        "linear_regression": "9",
        "variance": "6",
        "ratio of sums": "6",
        "mean": "3",
        "histogram": "3",
    },
    "gaussian": {"linear_regression": "4", "variance": "4", "ratio of sums": "4"},
}


def cases() -> Iterator[tuple[str, Case]]:
    for kind, usual in (("laplace", "1.5"), ("gaussian", "0.5")):
        for neighbours, table in (("add_remove", ADDED), ("replace_one", REPLACED)):
            for name, parts in table.items():
                loss = LOSSES[kind].get(name, usual)
                yield f"{name}-{kind}", Case(parts[0], {"kind": kind}, *parts[1:], neighbours, loss)
    for label, mechanism in CHOOSERS.items():
        for name, parts in CHOSEN.items():
            if label in ("permute_and_flip", "exponential") or name in ("mode", "median"):
                case = Case(parts[0], mechanism, *parts[1:], "replace_one", loss="1")
                yield f"{name}-{label}", case
    for noise, names in SCALED.items():
        for name in names:
            neighbours = "replace_one" if name in SMOOTH_REPLACED else "add_remove"
            parts = {**SMOOTH, **SMOOTH_REPLACED}[name]
            mechanism = {"kind": "smooth_sensitivity", "noise": noise}
            yield f"{name}-{noise}", Case(parts[0], mechanism, *parts[1:], neighbours, loss="2")
    for name, parts in REPORTED.items():
        mechanism = {"kind": "randomized_response"}
        yield f"{name}-randomized_response", Case(parts[0], mechanism, *parts[1:], "replace_one")


CASES = dict(cases())
