"""History that the ledger shows: queries, streams, entries and exports."""
