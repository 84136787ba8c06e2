"""Convert an account's spend to another currency.

This works from `pure` and `approximate`. The releases so far, although adaptively chosen, are
together (sum of epsilon, sum of delta)-private. The cost of one release with that promise bounds
the sum of their costs in every currency. (Costs of pure releases are convex in epsilon and 0 at 0,
so they are superadditive.) Curves cannot be converted back.
"""

from app.accounting import COMPOSITION_RULES
from app.accounting.losses import generic_loss
from app.accounting.rules.spending import Spend
from app.ledger.balance import Balance

_CONVERTIBLE = ("pure", "approximate")


def carried_over(balance: Balance, before: str, after: str) -> Balance | None:
    """The balance in the other currency, or None if it cannot be converted."""
    rule = COMPOSITION_RULES[after]
    if balance.untouched:
        return Balance(rule.nothing, balance.persons_may_move)
    if before not in _CONVERTIBLE:
        return None

    def read(spend: Spend) -> Spend:
        return rule.read(generic_loss(spend[0], spend[1])) if any(spend) else rule.nothing

    cells = {cell: read(spend) for cell, spend in balance.cells.items()}
    common = read(balance.common)
    if not all(rule.can_pay(spend) for spend in (common, *cells.values())):
        return None
    return Balance(common, balance.persons_may_move, cells)
