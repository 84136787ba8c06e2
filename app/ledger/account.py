"""An account: one holder's budget on one book, and the rule that admits a charge."""

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any, NamedTuple

from app.accounting import COMPOSITION_RULES
from app.accounting.loss import Loss
from app.accounting.losses import pure_loss
from app.accounting.precise import INFINITE
from app.accounting.rules.rule import Rule
from app.accounting.rules.spending import Spend, largest
from app.accounting.rules.terms import AccountTerms
from app.accounting.units import ATTO, PICO, wire, wire_text
from app.errors import AccountFrozen, BudgetExhausted
from app.ledger.balance import Balance, CellIndices
from app.ledger.chain import canonical, quoted
from app.ledger.uncountable import uncountable

EVERYBODY = "*"
NO_GRANT = "There is no dataset of this name on which you have a budget."
TYPICAL_COUNT_EPSILON = PICO // 10  # price of a count that `questions_left` assumes: 0.1


AmountUnits = tuple[int, int, dict[str, float | None]]  # epsilon, delta, and a currency's own units


class _Figures(NamedTuple):
    spent: AmountUnits
    remaining: AmountUnits
    deciding: list[Spend]  # one of these totals is the nearest to the limit


# Figures that the last charges have stated, by the identity of the balance. The reply to a charge
# states them again in its headers. For curves and cells, computing them is most of the work.
STATED_MAX = 64
_STATED: dict[int, tuple[Balance, AccountTerms, _Figures]] = {}


def _amount_text(epsilon: int, delta: int, own: dict[str, float | None]) -> str:
    """JSON of an amount. Keys stay sorted, because all names of own units sort after `epsilon`."""
    more = f",{canonical(own)[1:-1]}" if own else ""
    return f"{{{wire_text('delta', delta, ATTO)},{wire_text('epsilon', epsilon, PICO)}{more}}}"


def _deciding(totals: list[Spend], worst: Spend) -> list[Spend]:
    """The totals that decide the used share; more of any number never makes it smaller."""
    return [worst] if worst in totals else totals


def account_id(book_id: str, holder: str) -> str:
    """Id of an account. Accounts are locked in the order of this text."""
    return f"{book_id}/{holder}"


class Account(NamedTuple):
    """Terms and running spend. `version` rises with every change and is the budget's ETag."""

    book_id: str
    holder: str  # folded name of an analyst, group:name, or * for everybody together
    shown: str  # the same name as displayed
    currency: str
    terms: AccountTerms
    balance: Balance
    version: int

    @property
    def id(self) -> str:
        return account_id(self.book_id, self.holder)

    @property
    def rule(self) -> Rule:
        return COMPOSITION_RULES[self.currency]

    def admit(self, loss: Loss, cells: CellIndices = None) -> "Account":
        """The account after the charge, or a refusal that changes nothing."""
        rule = self.rule
        cost = rule.read(loss)
        if not rule.can_pay(cost):
            raise uncountable(self.shown, self.currency, loss)
        if self.frozen:
            raise AccountFrozen(
                f"The budget of {self.shown} is frozen: its limit is below its spend.",
                lambda: self._refusal(loss, cells),
            )
        balance = self.balance.charged(cost, cells)
        if not self._admits(balance, cells):
            raise BudgetExhausted(
                f"The question costs more than the budget of {self.shown} has left.",
                lambda: self._refusal(loss, cells),
            )
        return self._with(balance)

    def _admits(self, balance: Balance, cells: CellIndices = None) -> bool:
        rule, terms = self.rule, self.terms
        for total in balance.totals(cells):  # noqa: SIM110  # a generator costs more than the rule
            if not rule.admits(total, terms):
                return False
        return True

    def book(self, losses: Sequence[Loss]) -> "Account":
        """The account after losses from elsewhere, which count even past the limit."""
        for index, loss in enumerate(losses):
            if not self.rule.can_pay(self.rule.read(loss)):
                raise uncountable(self.shown, self.currency, loss, f"/events/{index}")
        return self._with(self.balance.charged(self.rule.read(reduce(add, losses)), None))

    def give_back(self, loss: Loss, cells: CellIndices) -> "Account":
        return self._with(self.balance.given_back(self.rule.read(loss), cells))

    def _with(self, balance: Balance) -> "Account":
        terms = (self.book_id, self.holder, self.shown, self.currency, self.terms)
        return Account(*terms, balance, self.version + 1)

    @property
    def untouched(self) -> bool:
        return self.balance.untouched

    # Figures for display; with cells, every figure holds for every cell

    @property
    def frozen(self) -> bool:
        """True if the limit is below the spend: nothing is admitted and nothing changes."""
        return not self._admits(self.balance)

    def for_cell(self, cell: int) -> "Account":
        """The same account for the persons of one cell."""
        return self._replace(balance=Balance(self.balance.cell(cell)))

    def balances(self) -> dict[str, Any]:
        """Spent and remaining budget, as (epsilon, delta) and in the currency's own units."""
        figures = self._figures()
        return {
            name: {**wire("epsilon", epsilon, PICO), **wire("delta", delta, ATTO), **own}
            for name, (epsilon, delta, own) in (
                ("spent", figures.spent),
                ("remaining", figures.remaining),
            )
        }

    def balances_json(self) -> str:
        """Canonical JSON of holder, remaining and spent, for every charge."""
        figures = self._figures()
        if self.terms.order is not None or self.balance.cells:
            if len(_STATED) >= STATED_MAX:
                _STATED.clear()
            _STATED[id(self.balance)] = (self.balance, self.terms, figures)
        remaining, spent = _amount_text(*figures.remaining), _amount_text(*figures.spent)
        return f'{{"holder":{quoted(self.shown)},"remaining":{remaining},"spent":{spent}}}'

    def remaining_and_used(self) -> tuple[int, int, float]:
        """Remaining epsilon and delta, in units, and the used share; for every reply."""
        stated = _STATED.get(id(self.balance))
        if stated is not None and stated[0] is self.balance and stated[1] is self.terms:
            figures = stated[2]
        else:
            figures = self._figures()
        epsilon, delta, _ = figures.remaining
        return epsilon, delta, self._largest_share(figures.deciding)

    def _figures(self) -> _Figures:
        """Spent and remaining; with cells, the largest spend and the least remainder."""
        rule, terms, balance = self.rule, self.terms, self.balance
        if balance.cells:
            totals = balance.totals()
            worst = largest(totals)
            epsilon, delta = self._promise_to_every_cell(totals, worst)
            deciding = _deciding(totals, worst)
        else:
            worst = balance.common
            epsilon, delta = rule.promise_spent(worst, terms)
            deciding = [worst]
        left = rule.left(worst, terms)
        remaining = max(0, terms.epsilon - epsilon), left[1], rule.own_units(left, terms)
        return _Figures((epsilon, delta, rule.own_units(worst, terms)), remaining, deciding)

    def _promise_to_every_cell(self, totals: list[Spend], worst: Spend) -> Spend:
        """The largest epsilon and delta of the promises to each cell.

        A promise is the smaller of two epsilons, and only one of the two needs delta. So a cell
        with a smaller spend may need delta where one with a larger spend does not.
        """
        rule, terms, balance = self.rule, self.terms, self.balance
        if worst in totals:  # it dominates all other totals, and so does its epsilon
            promise = rule.promise_spent(worst, terms)
            floor = (worst[0], *balance.floor(totals)[1:])
            if promise[1] > worst[1] or rule.promise_spent(floor, terms)[1] == floor[1]:
                return promise  # it needs delta itself, or no cell does
        return largest([rule.promise_spent(total, terms) for total in balance.deciding_totals()])

    def price(self, loss: Loss) -> dict[str, Any] | None:
        """Price of one loss alone, or None if the currency cannot count it.

        Given as (epsilon, delta) at the account's delta, and in the currency's own units.
        """
        cost = self.rule.read(loss)
        if not self.rule.can_pay(cost):
            return None
        epsilon, delta = self.rule.promise_spent(cost, self.terms)
        return {
            "currency": self.currency,
            **wire("epsilon", epsilon, PICO),
            **wire("delta", delta, ATTO),
            **self.rule.own_units(cost, self.terms),
        }

    @property
    def limit(self) -> dict[str, Any]:
        return {
            **wire("epsilon", self.terms.epsilon, PICO),
            **wire("delta", self.terms.delta, ATTO),
            **self.rule.own_units(self.terms.limits, self.terms),
        }

    @property
    def used(self) -> float:
        totals = self.balance.totals()
        return self._largest_share(_deciding(totals, largest(totals)))

    def _largest_share(self, totals: list[Spend]) -> float:
        rule, terms = self.rule, self.terms
        return min(1.0, max(rule.used(total, terms) for total in totals))

    def questions_left(self, cells: CellIndices = None) -> int:
        """Number of typical counts that would still be admitted."""
        return self.repeats_left(pure_loss(TYPICAL_COUNT_EPSILON), cells)

    def repeats_left(self, loss: Loss, cells: CellIndices = None) -> int:
        """Number of times that the same query would still be admitted."""
        rule, cost = self.rule, self.rule.read(loss)
        if self.frozen or not rule.can_pay(cost):
            return 0
        return min(rule.times(total, cost, self.terms) for total in self._room(cells))

    def largest_epsilon(self, cells: CellIndices = None) -> int:
        """The largest epsilon of a pure query that would still be admitted, in units."""
        if self.frozen:
            return 0
        return min(self.rule.largest_epsilon(total, self.terms) for total in self._room(cells))

    def _room(self, cells: CellIndices) -> list[Spend]:
        """Totals to which a cost on these cells is added.

        A number whose limit the worst pair of cells has passed can admit no further cost on any
        cell, so it counts as infinite.
        """
        room = self.balance.room(cells)
        if not self.balance.persons_may_move or cells is None:
            return room
        (worst,) = self.balance.totals()
        passed = [have > of for have, of in zip(worst, self.terms.limits, strict=True)]
        return [
            tuple(INFINITE if gone else units for gone, units in zip(passed, total, strict=True))
            for total in room
        ]

    @property
    def worst(self) -> Spend:
        """Largest value of each number over the cells: no cell exceeds it in any number."""
        return largest(self.balance.totals())

    def _refusal(self, loss: Loss, cells: CellIndices) -> dict[str, Any]:
        return {
            "account": self.shown,
            "currency": self.currency,
            "requested": loss.to_json(),
            "remaining": self.balances()["remaining"],
            **wire("largest_epsilon", self.largest_epsilon(cells), PICO),
            "retryable": False,
        }
