"""Statements that read exact statistics, in three SQL dialects."""
