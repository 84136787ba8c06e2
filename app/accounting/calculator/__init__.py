"""Stateless calculator over events whose parameters are all fixed in advance.

Every figure is an upper bound, computed in decimals and rounded up. An accountant without a sound
bound for a list of events states the reason instead.
"""
