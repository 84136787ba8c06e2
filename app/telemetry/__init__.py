"""Metrics, logs and traces for operators. None of them has a value of a dataset."""
