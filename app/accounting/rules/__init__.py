"""Stop rules, one per currency, and the totals and terms they read."""
