"""Notice a ledger that was rolled back, refuse to charge it, and book what it lost."""
