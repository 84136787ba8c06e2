"""The writer: commits waiting orders in batches, on its own connection."""
