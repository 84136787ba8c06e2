"""What may be asked: one file for each kind of question, and the union of them all."""

from typing import Annotated

from pydantic import Field

from app.queries.count import Count
from app.queries.histogram import Histogram
from app.queries.mean import Mean
from app.queries.sum import Sum

QUERIES = {"count": Count, "sum": Sum, "mean": Mean, "histogram": Histogram}

Query = Annotated[Count | Sum | Mean | Histogram, Field(discriminator="kind")]
