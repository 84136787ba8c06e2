"""The writer: commits waiting orders in batches, on a connection of its own."""
