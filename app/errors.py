"""Errors that callers see; nothing here knows HTTP.

AppError
├── AccessError
│   ├── NotAuthenticated      no key, or one that is unknown, expired or revoked
│   ├── NotPermitted          this role may not do this
│   └── NoGrant               no such dataset for this analyst, or nothing granted on it
├── NotFound                  unknown, or hidden from this caller: the two look alike
├── Invalid                   a request that breaks a rule; names field and rule, never a value
│   ├── Malformed             not valid JSON by our strict rules
│   └── TooLarge              over a limit of size
├── Conflict                  the name is taken, the state does not allow it
│   ├── PreconditionFailed    the budget has changed since the caller read it
│   ├── DatasetClosed         no new query about this dataset is answered
│   ├── IdempotencyConflict   this request key was used with another body
│   ├── StillRunning          the first attempt under this request key holds its lease
│   └── StreamEnded           this stream gives no more answers
├── TooManyRunning            too many queries run or wait, in total or for this analyst
├── LedgerError
│   ├── BudgetExhausted       the query costs more than an account has left
│   └── AccountFrozen         the limit was lowered below the spend
├── EngineError
│   ├── EngineUnavailable     the data cannot be opened; no row was read
│   │   └── SourceChanged     the data differ from the registered ones
│   └── EngineFailed          failed after data may have been read; never says why
├── QuestionForfeited         charged, not answered, and never will be
├── QuestionVoided            charged and refunded, because no data was read
├── LedgerBehind              the ledger was restored from an older copy: charging is stopped
├── SecretUnavailable         a stream's secret cannot be encrypted or decrypted here
└── StoreUnavailable          the ledger cannot be reached; repeat with the same request key
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from typing_extensions import override


class AppError(Exception):
    """A failure with one sentence for people and members for machines."""

    def __init__(self, detail: str, **members: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self._members = members

    @property
    def members(self) -> dict[str, Any]:
        return self._members


@dataclass(frozen=True, slots=True)
class FieldError:
    """One broken rule: where it is in the body, and what was expected there."""

    pointer: str
    rule: str


class AccessError(AppError):
    pass


class NotAuthenticated(AccessError):
    pass


class NotPermitted(AccessError):
    pass


class NoGrant(AccessError):
    pass


class NotFound(AppError):
    pass


class Invalid(AppError):
    def __init__(self, detail: str, *fields: FieldError, **members: Any) -> None:
        super().__init__(detail, **members)
        self.fields = fields

    @classmethod
    def field(cls, pointer: str, rule: str) -> "Invalid":
        return cls(f"{pointer}: {rule}", FieldError(pointer, rule))


class Malformed(Invalid):
    pass


class TooLarge(Invalid):
    pass


class Conflict(AppError):
    pass


class PreconditionFailed(Conflict):
    pass


class DatasetClosed(Conflict):
    pass


class IdempotencyConflict(Conflict):
    pass


class StillRunning(Conflict):
    """The first attempt under this request key still runs.

    `charge_id` and `charged` (the answer's members about the charge) describe the running query,
    if there is one.
    """

    def __init__(
        self,
        detail: str,
        *,
        retry_after_seconds: int,
        charge_id: str | None = None,
        charged: str = "",
    ) -> None:
        super().__init__(detail, **({} if charge_id is None else {"id": charge_id}))
        self.retry_after_seconds = retry_after_seconds
        self.charge_id = charge_id
        self.charged = charged


class StreamEnded(Conflict):
    pass


class TooManyRunning(AppError):
    pass


class LedgerError(AppError):
    """A refusal. Its members are computed when they are sent, not while others wait to charge."""

    def __init__(self, detail: str, members: Callable[[], dict[str, Any]]) -> None:
        super().__init__(detail)
        self._later_members = members

    @cached_property
    @override
    def members(self) -> dict[str, Any]:
        return self._later_members()


class BudgetExhausted(LedgerError):
    pass


class AccountFrozen(LedgerError):
    pass


class EngineError(AppError):
    pass


class EngineUnavailable(EngineError):
    pass


class SourceChanged(EngineUnavailable):
    pass


class EngineFailed(EngineError):
    pass


class QuestionForfeited(AppError):
    pass


class QuestionVoided(AppError):
    pass


class LedgerBehind(AppError):
    pass


class SecretUnavailable(AppError):
    pass


class StoreUnavailable(AppError):
    pass
