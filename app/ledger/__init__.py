"""Accounts, charges and the append-only, hash-chained book they are written in: pure decisions."""
