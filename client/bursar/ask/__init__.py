"""Building questions: filters, kinds, prices, plans and streams."""
