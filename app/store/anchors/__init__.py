"""Anchors outside the database: they reveal that a ledger was rolled back."""
