"""Accounts, charges and the append-only, hash-chained books that record them: pure decisions."""
