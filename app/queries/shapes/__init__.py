"""Shapes: the public facts about a query that mechanisms need."""
