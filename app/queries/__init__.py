"""Query kinds: one file for each kind or family of queries, and the union of them all."""

from typing import Annotated

from pydantic import Field

from app.queries.blocks.sample_aggregate import SampleAggregate
from app.queries.choices.mode import Mode, TopK
from app.queries.choices.price import Price
from app.queries.keys import Keys
from app.queries.randomized_column import RandomizedColumn
from app.queries.ranks.extremes import Max, Min
from app.queries.ranks.iqr import Iqr
from app.queries.ranks.quantile import Median, Quantile
from app.queries.ranks.trimmed_mean import TrimmedMean
from app.queries.regression.linear import LinearRegression
from app.queries.regression.logistic import LogisticRegression
from app.queries.regression.prediction_variance import PredictionVariance
from app.queries.sums.aggregates import Aggregates
from app.queries.sums.count import Count
from app.queries.sums.count_distinct import CountDistinct
from app.queries.sums.histogram import Histogram
from app.queries.sums.mean import Mean
from app.queries.sums.ratio import Ratio
from app.queries.sums.reciprocal import Reciprocal
from app.queries.sums.sum import Sum
from app.queries.sums.variance import Variance
from app.queries.triangles import Triangles
from app.queries.workloads.cdf import Cdf
from app.queries.workloads.workload import Workload

QUERIES = {
    "count": Count,
    "count_distinct": CountDistinct,
    "sum": Sum,
    "mean": Mean,
    "variance": Variance,
    "aggregates": Aggregates,
    "ratio": Ratio,
    "reciprocal": Reciprocal,
    "histogram": Histogram,
    "workload": Workload,
    "cdf": Cdf,
    "linear_regression": LinearRegression,
    "randomized_column": RandomizedColumn,
    "logistic_regression": LogisticRegression,
    "keys": Keys,
    "mode": Mode,
    "top_k": TopK,
    "quantile": Quantile,
    "median": Median,
    "min": Min,
    "max": Max,
    "price": Price,
    "iqr": Iqr,
    "trimmed_mean": TrimmedMean,
    "triangles": Triangles,
    "sample_aggregate": SampleAggregate,
    "prediction_variance": PredictionVariance,
}

# Measured: numbers with noise. Aggregates: several of them. Combined: sums of noisy counts. Chosen:
# one public outcome. Fitted: a fit to noisy moments (LinearRegression) or weights learned step by
# step (LogisticRegression). Ranked: a value computed from ranks. Triangles: a count of a graph.
# RandomizedColumn: randomised reports of all rows. Keys: texts that are not public.
Measured = (
    Count
    | CountDistinct
    | Sum
    | Mean
    | Variance
    | Ratio
    | Reciprocal
    | Histogram
    | SampleAggregate
    | PredictionVariance
)
Combined = Workload | Cdf
Chosen = Mode | TopK | Quantile | Median | Min | Max | Price
Fitted = LinearRegression | LogisticRegression
Ranked = Iqr | TrimmedMean
Query = Annotated[
    Measured
    | Aggregates
    | Combined
    | Chosen
    | Fitted
    | Ranked
    | Triangles
    | RandomizedColumn
    | Keys,
    Field(discriminator="kind"),
]
