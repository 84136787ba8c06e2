"""The file that `bursard apply` reads: the bodies of the HTTP interface, as lists."""

from typing import Annotated, Any, Literal

from pydantic import Field

from app.api.analysts import Groups, RoleIn
from app.api.budgets import BudgetRequest
from app.api.dataset_models import DatasetRequest
from app.api.http.wire import Reason, WireRequest

Name = Annotated[str, Field(min_length=1, max_length=200)]
AllowLower = Annotated[bool, Field(description="May take something away.")]


class PersonItem(WireRequest):
    """A person; a field that is left out stays unchanged."""

    name: Name
    role: RoleIn | None = None
    groups: Groups | None = None
    enabled: bool | None = None
    reason: Reason = None
    allow_lower: AllowLower = False


class DatasetItem(DatasetRequest):
    """A dataset as POST /v1/datasets takes it, and whether it is open."""

    status: Literal["open", "closed"] | None = None
    allow_lower: AllowLower = False


class BudgetItem(BudgetRequest):
    """A budget as PUT /v1/datasets/{dataset}/budgets/{holder} takes it."""

    dataset: Name
    holder: Name
    allow_lower: AllowLower = False


class ApplyFile(WireRequest):
    reason: Reason = None
    people: list[PersonItem] = Field(default_factory=list)
    datasets: list[DatasetItem] = Field(default_factory=list)
    budgets: list[BudgetItem] = Field(default_factory=list)


SECTIONS: tuple[str, ...] = ("people", "datasets", "budgets")


def empty_sections(data: Any) -> Any:
    """A section without items is null in YAML, and means an empty list."""
    if not isinstance(data, dict):
        return data
    return {
        name: [] if value is None and name in SECTIONS else value for name, value in data.items()
    }
