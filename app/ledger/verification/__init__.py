"""Verify a ledger or an export."""
