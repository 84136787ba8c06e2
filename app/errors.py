"""Everything that can go wrong and is said to a caller; nothing here knows HTTP.

AppError
├── AccessError
│   ├── NotAuthenticated      no key, or one that is unknown, expired or revoked
│   ├── NotPermitted          this role may not do this
│   └── NoGrant               no such dataset for this analyst, or nothing granted on it
├── NotFound                  unknown, or hidden from this caller: the two look alike
├── Invalid                   a request that breaks a rule; names field and rule, never a value
│   ├── Malformed             not JSON as we read it
│   └── TooLarge              over a limit of size
├── Conflict                  the name is taken, the state does not allow it
│   ├── PreconditionFailed    the budget is not the one the caller saw
│   ├── DatasetClosed         nothing new is answered about this dataset
│   ├── IdempotencyConflict   this request key was used with another body
│   ├── StillRunning          the first attempt under this request key holds its lease
│   └── StreamEnded           nothing more is answered by this stream
├── TooManyRunning            this server answers as many questions as it can; nothing is charged
├── LedgerError
│   ├── BudgetExhausted       the question costs more than an account has left
│   └── AccountFrozen         the limit was lowered below what is spent
├── EngineError
│   ├── EngineUnavailable     the data cannot be opened; no row was read
│   │   └── SourceChanged     they are not what was registered
│   └── EngineFailed          failed after data was asked; never says why
├── QuestionForfeited         charged, could not be answered, never will be
├── QuestionVoided            charged, given back, because no data was read
├── LedgerBehind              it was restored from an older copy: nothing is charged for now
├── SecretUnavailable         what a stream keeps secret cannot be sealed or opened here
└── StoreUnavailable          the ledger cannot be reached; the outcome resolves by the same key
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
    """`charge_id` and `charged`, the charge's members of its answer, are of the question that runs,
    where there is one."""

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
    """A refusal. What is left is worked out when it is told, not while others wait to charge."""

    def __init__(self, detail: str, members: Callable[[], dict[str, Any]]) -> None:
        super().__init__(detail)
        self._told = members

    @cached_property
    @override
    def members(self) -> dict[str, Any]:
        return self._told()


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
