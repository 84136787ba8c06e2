"""Basic composition: losses add up, and an account stops before their sum passes its limit.

Theorem: Dwork, McSherry, Nissim and Smith (2006) for fixed parameters; Rogers, Roth, Ullman and
Vadhan (2016), Theorem 5.1, for an analyst who picks each question and its epsilon and delta after
seeing the earlier answers: refusing the first charge that would pass the limit is a valid filter.
Assumes: every charge is the true loss of its release under the dataset's neighbouring relation.
Rounding: exact integers; nothing is rounded here.
"""

from dataclasses import dataclass

from app.accounting.loss import Loss

THEOREM = "Rogers, Roth, Ullman and Vadhan 2016, Theorem 5.1: basic composition as a privacy filter"


@dataclass(frozen=True, slots=True)
class BasicRule:
    """The stop rule of `pure` and `approximate` accounts."""

    currency: str
    spends_delta: bool
    theorem: str = THEOREM

    def admits(self, *, spent: Loss, cost: Loss, limit: Loss) -> bool:
        return (
            spent.epsilon + cost.epsilon <= limit.epsilon
            and spent.delta + cost.delta <= limit.delta
        )

    def can_pay(self, cost: Loss) -> bool:
        return self.spends_delta or cost.delta == 0

    def remaining(self, *, spent: Loss, limit: Loss) -> Loss:
        return limit.minus(spent)

    def largest_epsilon(self, *, spent: Loss, limit: Loss) -> int:
        """The largest pure question, in units, that would still be admitted."""
        return limit.minus(spent).epsilon if spent.within(limit) else 0

    def used(self, *, spent: Loss, limit: Loss) -> float:
        """How far the stop rule has come, from 0 to 1."""
        parts = [(spent.epsilon, limit.epsilon), (spent.delta, limit.delta)]
        return max(min(1.0, have / of) if of else float(have > 0) for have, of in parts)
