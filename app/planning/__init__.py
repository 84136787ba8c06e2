"""From a question and a card to a plan, without reading data."""
