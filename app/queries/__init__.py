"""What may be asked: one file for each kind of question, and the union of them all."""

from typing import Annotated

from pydantic import Field

from app.queries.count import Count
from app.queries.extremes import Max, Min
from app.queries.histogram import Histogram
from app.queries.mean import Mean
from app.queries.mode import Mode, TopK
from app.queries.price import Price
from app.queries.quantile import Median, Quantile
from app.queries.sum import Sum

QUERIES = {
    "count": Count,
    "sum": Sum,
    "mean": Mean,
    "histogram": Histogram,
    "mode": Mode,
    "top_k": TopK,
    "quantile": Quantile,
    "median": Median,
    "min": Min,
    "max": Max,
    "price": Price,
}

Measured = Count | Sum | Mean | Histogram  # answered by numbers with noise
Chosen = Mode | TopK | Quantile | Median | Min | Max | Price  # answered by one public outcome
Query = Annotated[Measured | Chosen, Field(discriminator="kind")]
