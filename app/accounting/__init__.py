"""The mathematics of loss: units, and one stop rule for each currency an account can have."""

from app.accounting.basic import BasicRule
from app.accounting.concentrated import ConcentratedRule
from app.accounting.gaussian_rule import GaussianRule
from app.accounting.renyi import RenyiRule
from app.accounting.rule import Rule

COMPOSITION_RULES: dict[str, Rule] = {
    "pure": BasicRule(currency="pure", spends_delta=False),
    "approximate": BasicRule(currency="approximate", spends_delta=True),
    "zcdp": ConcentratedRule(),
    "renyi": RenyiRule(),
    "gdp": GaussianRule(),
}
