"""What is publicly declared about a dataset: card, columns, expressions."""
