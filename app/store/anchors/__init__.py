"""Anchors outside the database: they reveal a ledger that was rolled back."""
