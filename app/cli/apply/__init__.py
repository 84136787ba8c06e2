"""`bursard apply`: people, datasets and budgets from a file."""
