"""What may be asked: one file for each kind of question, and the union of them all."""

from typing import Annotated

from pydantic import Field

from app.queries.count import Count
from app.queries.histogram import Histogram
from app.queries.mean import Mean
from app.queries.ratio import Ratio
from app.queries.reciprocal import Reciprocal
from app.queries.sum import Sum
from app.queries.variance import Variance

QUERIES = {
    "count": Count,
    "sum": Sum,
    "mean": Mean,
    "variance": Variance,
    "ratio": Ratio,
    "reciprocal": Reciprocal,
    "histogram": Histogram,
}

Measured = Count | Sum | Mean | Variance | Ratio | Reciprocal | Histogram
Query = Annotated[Measured, Field(discriminator="kind")]
