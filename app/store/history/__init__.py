"""What the ledger shows: questions, streams, entries and exports."""
