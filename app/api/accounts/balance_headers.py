"""Headers with the present balance of an account, beside replies whose text may be older.

`Bursar-Remaining` is a dictionary of RFC 8941. Its values are strings, because the RFC's own
decimals have three digits after the point. `Bursar-Used` is such a decimal, rounded up.
"""

from math import ceil

from fastapi import Response

from app.access import Principal, Role
from app.accounting.units import ATTO, PICO, exact_decimal
from app.api.http.problems import problem
from app.api.http.services import Services
from app.errors import (
    AccessError,
    AppError,
    LedgerError,
    QuestionForfeited,
    QuestionVoided,
    StillRunning,
)
from app.ledger.account import Account
from app.names import folded

RawHeaders = tuple[tuple[bytes, bytes], ...]

REMAINING, USED = b"bursar-remaining", b"bursar-used"
# Refusals of a caller who has a grant, and who may therefore see the balance.
DECIDED = (LedgerError, QuestionForfeited, QuestionVoided, StillRunning)
RENDERED_MAX = 64
NO_HEADERS: RawHeaders = ()
# Headers of the last accounts, by their identity: charges that one commit has carried share one.
_RENDERED: dict[int, tuple[Account, RawHeaders]] = {}


def raw_headers(account: Account | None) -> RawHeaders:
    """The two headers as bytes; none without an account. For hot routes, on the event loop."""
    if account is None:
        return NO_HEADERS
    rendered = _RENDERED.get(id(account))
    if rendered is None or rendered[0] is not account:
        if len(_RENDERED) >= RENDERED_MAX:
            _RENDERED.clear()
        rendered = _RENDERED[id(account)] = (account, _render(account))
    return rendered[1]


def balance_headers(account: Account | None) -> dict[str, str]:
    if account is None:
        return {}
    return {name.decode(): value.decode() for name, value in _render(account)}


def _render(account: Account) -> RawHeaders:
    epsilon, delta, used = account.remaining_and_used()
    remaining = f'epsilon="{exact_decimal(epsilon, PICO)}"'
    if account.terms.delta:
        remaining += f', delta="{exact_decimal(delta, ATTO)}"'
    return (REMAINING, remaining.encode()), (USED, _used(used).encode())


def _used(used: float) -> str:
    thousandths = ceil(used * 1000)
    if (thousandths - 1) / 1000 >= used:  # the product was rounded past a whole number
        thousandths -= 1
    whole, part = divmod(thousandths, 1000)
    return f"{whole}.{f'{part:03d}'.rstrip('0') or '0'}"


def at_once(deps: Services, principal: Principal, book_id: str | None) -> RawHeaders:
    """The same as `after_decision` without waiting, or no headers if that would need a read."""
    if book_id is None:
        return NO_HEADERS
    return raw_headers(deps.ledger.known_account(book_id, principal.holders))


async def after_decision(deps: Services, principal: Principal, dataset: str) -> RawHeaders:
    """Headers of a reply to an order that was just decided, from the writer's snapshot."""
    try:
        grant = await deps.catalogue.grant(dataset, principal.holders)
    except AccessError:  # withdrawn meanwhile
        return NO_HEADERS
    book_id = grant.dataset.book_id
    return at_once(deps, principal, book_id) or await in_book(deps, principal, book_id)


async def refused(deps: Services, principal: Principal, dataset: str, error: AppError) -> Response:
    """Problem response to a caller with a grant, with the balance."""
    response = problem(error)
    response.raw_headers.extend(await after_decision(deps, principal, dataset))
    return response


async def in_book(deps: Services, principal: Principal, book_id: str) -> RawHeaders:
    """Headers of a reply about this book, from the ledger."""
    return raw_headers(await _read(deps, principal, book_id))


async def on_granted(deps: Services, principal: Principal, dataset: str) -> dict[str, str]:
    """The same by the name of a dataset on which the caller has a grant."""
    try:
        grant = await deps.catalogue.grant(dataset, principal.holders)
    except AccessError:
        return {}
    return balance_headers(await _read(deps, principal, grant.dataset.book_id))


async def _read(deps: Services, principal: Principal, book_id: str) -> Account | None:
    holders = principal.holders
    by_holder = await deps.ledger.accounts(book_id, list(holders))
    return next((by_holder[holder] for holder in holders if holder in by_holder), None)


def on_dataset(deps: Services, principal: Principal, dataset: str) -> dict[str, str]:
    """The same without a cache; blocking, for routes that run in a thread."""
    if principal.role is not Role.ANALYST:
        return {}
    holders = principal.holders
    rows = deps.budgets.all(holders=holders, after="", limit=len(holders), dataset=folded(dataset))
    accounts = {budget.account.holder: budget.account for _, budget in rows}
    return balance_headers(next((accounts[each] for each in holders if each in accounts), None))
