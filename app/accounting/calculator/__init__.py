"""A stateless calculator over events whose parameters are all fixed in advance.

Every figure is an upper bound, computed in decimals and rounded up; an accountant that has no sound
bound for a list of events says why instead.
"""
