"""SQL: the ledger, people and registered datasets, on SQLite or PostgreSQL."""
