"""The mathematics of loss: units, and one stop rule for each currency an account can have."""

from app.accounting.basic import BasicRule

COMPOSITION_RULES: dict[str, BasicRule] = {
    "pure": BasicRule(currency="pure", spends_delta=False),
    "approximate": BasicRule(currency="approximate", spends_delta=True),
}
