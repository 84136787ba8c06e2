"""Public declaration of a dataset: card, columns, expressions."""
