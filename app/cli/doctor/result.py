"""The result of one check, as a line or as JSON."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class CheckState(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CheckResult:
    state: CheckState
    check: str  # what was looked at
    text: str
    advice: str = ""  # what to do; empty if it is ok

    def line(self) -> str:
        advice = f" {self.advice}" if self.advice else ""
        return f"{self.state.value:8} {self.check}: {self.text}{advice}"

    def members(self) -> dict[str, Any]:
        return {
            "check": self.check,
            "state": self.state.value,
            "text": self.text,
            "advice": self.advice or None,
        }


def ok(check: str, text: str) -> CheckResult:
    return CheckResult(CheckState.OK, check, text)


def warning(check: str, text: str, advice: str) -> CheckResult:
    return CheckResult(CheckState.WARNING, check, text, advice)


def failed(check: str, text: str, advice: str) -> CheckResult:
    return CheckResult(CheckState.FAILED, check, text, advice)
