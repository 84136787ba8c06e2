"""Bugs in a server's noise, planted before it starts."""

HALVED = """
import app.queries.shapes.measures as measures
whole = measures.sensitivity_l1
measures.sensitivity_l1 = lambda *a, **k: (whole(*a, **k) + 1) // 2
"""
QUIET = """
import app.mechanisms.sampling.system as sampling
import app.mechanisms.selection.selection_release as selection
noise = sampling.SystemRandom
whole, bell = noise.discrete_laplace, noise.discrete_gaussian
noise.discrete_laplace = lambda self, scale, size: whole(self, scale / 2, size)
noise.discrete_gaussian = lambda self, scale, size: bell(self, scale / 2, size)
slow = selection._rate
selection._rate = lambda shape, epsilon: 4 * slow(shape, epsilon)
"""
NARROW = """
import app.mechanisms.smooth_sensitivity.rank_statistics as mechanism
bound = mechanism.smooth_bound
mechanism.smooth_bound = lambda *given: bound(*given) / 8
"""
