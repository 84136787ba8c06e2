"""The result of a verification."""

from dataclasses import dataclass, field

FINDINGS_MAX = 1000


@dataclass(frozen=True, slots=True)
class Finding:
    """A disagreement, and where it was found."""

    book: str
    seq: int | None
    account: str | None
    problem: str
    charge: str | None = None


@dataclass(slots=True)
class Report:
    entries: int = 0
    books: int = 0
    accounts: int = 0
    charges: int = 0
    findings: list[Finding] = field(default_factory=list)
    not_covered: dict[str, int] = field(default_factory=dict)

    @property
    def sound(self) -> bool:
        return not self.findings
