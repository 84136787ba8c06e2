"""The ledger as a whole: verify, reconcile."""
