"""Detect a ledger that was rolled back, refuse to charge it, and book its lost spends."""
