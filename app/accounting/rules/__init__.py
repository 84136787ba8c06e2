"""One stop rule for each currency, and the totals and terms they read."""
