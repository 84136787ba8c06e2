"""Shapes: what mechanisms need to know about a question, all of it public."""
