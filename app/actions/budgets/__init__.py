"""Budgets: grant, book losses, replay an account, trace the trade-off."""
