"""Mathematics of privacy loss: units, and one stop rule for each currency of an account."""

from app.accounting.rules.basic import BasicRule
from app.accounting.rules.gdp import GaussianRule
from app.accounting.rules.renyi import RenyiRule
from app.accounting.rules.rule import Rule
from app.accounting.rules.zcdp import ConcentratedRule

COMPOSITION_RULES: dict[str, Rule] = {
    "pure": BasicRule(currency="pure", spends_delta=False),
    "approximate": BasicRule(currency="approximate", spends_delta=True),
    "zcdp": ConcentratedRule(),
    "renyi": RenyiRule(),
    "gdp": GaussianRule(),
}
