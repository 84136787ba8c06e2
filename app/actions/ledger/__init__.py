"""Budgets and the ledger: grant, book, verify, reconcile, trace."""
