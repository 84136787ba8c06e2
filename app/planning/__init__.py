"""Planning: from a query and a card to a priced plan, without reading data."""
