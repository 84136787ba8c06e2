"""Ports to people and datasets that are registered."""

from collections.abc import Collection
from typing import Protocol

from app.access import Analyst, Key, Principal, Role
from app.data.card import Dataset
from app.data.inspection import EpochInspection, Inspection, PrivateFiles


class Analysts(Protocol):
    def find(self, name: str) -> Analyst: ...

    def all(self, *, after: str, limit: int) -> list[Analyst]: ...

    def keys(self, analyst_id: str) -> list[Key]: ...

    def principal(self, token: str) -> Principal | None: ...

    def group(self, name: str) -> str: ...

    def create(
        self,
        actor: str,
        name: str,
        role: Role,
        reason: str | None,
        request: str | None,
        body: str,
        groups: tuple[str, ...] = (),
    ) -> Analyst: ...

    def alter(
        self,
        actor: str,
        name: str,
        *,
        role: Role | None,
        enabled: bool | None,
        groups: tuple[str, ...] | None,
        reason: str | None,
    ) -> Analyst: ...

    def issue_key(
        self,
        actor: str,
        name: str,
        *,
        expires_at: int | None,
        reason: str | None,
        request: str | None,
        body: str,
    ) -> tuple[Key, str | None]: ...

    def revoke_key(self, actor: str, key_id: str, reason: str | None) -> None: ...


class Datasets(Protocol):
    def find(self, name: str, holders: tuple[str, ...] | None = None) -> Dataset:
        """The dataset. Raises NotFound, after the same work, for unknown and for ungranted names.

        A name is ungranted if none of the holders has a budget on it; None skips this check.
        """
        ...

    def all(self, *, holders: tuple[str, ...] | None, after: str, limit: int) -> list[Dataset]: ...

    def private_files(self) -> PrivateFiles:
        """Files of all datasets, including closed ones."""
        ...

    def fingerprint(self, dataset: Dataset) -> str: ...

    def known_seed(self, inspection: Inspection) -> str | None:
        """Seed of the book that these rows would join; None if they have none."""
        ...

    def remembered(self, request: str | None, body: str) -> Dataset | None: ...

    def register(
        self,
        actor: str,
        dataset: Dataset,
        inspection: Inspection,
        *,
        reason: str | None,
        request: str | None,
        body: str,
    ) -> Dataset: ...

    def append(
        self,
        actor: str,
        before: Dataset,
        after: Dataset,
        inspection: EpochInspection,
        *,
        reason: str | None,
    ) -> Dataset: ...

    def holds(self, dataset: Dataset, inspection: Inspection) -> bool:
        """True if the version has equally many rows, with the same values in every column."""
        ...

    def holds_whole_rows(self, dataset: Dataset, inspection: Inspection) -> bool:
        """True if it has the same whole rows, each in the same cell; False if that is unknown."""
        ...

    def refresh(
        self,
        actor: str,
        before: Dataset,
        after: Dataset,
        inspection: Inspection,
        *,
        reason: str | None,
    ) -> Dataset: ...

    def alter(
        self,
        actor: str,
        name: str,
        *,
        description: str | None,
        closed: bool | None,
        reason: str | None,
    ) -> Dataset: ...


class OldVersions(Protocol):
    def unneeded(self, present: Collection[str]) -> list[str]:
        """Those of the present versions that no dataset and no unsettled charge needs."""
        ...
