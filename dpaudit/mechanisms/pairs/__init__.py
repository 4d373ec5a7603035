"""Dominating pairs: the two distributions that stand for the worst neighbours of a mechanism.

A pair (P, Q) dominates a mechanism M if the hockey-stick divergence of P and Q is at least that of
M(x) and M(x') for all neighbours x, x' and every order (Zhu, Dong and Wang 2022, Definition 7).
Everything an accountant needs follows from the law of the privacy loss L = ln dP/dQ under P and Q.

The pairs here are *symmetric*: the loss under P has the law of minus the loss under Q, so that both
directions of the relation cost the same. Sampling breaks the symmetry; it is applied to a pair by
the accounting layer.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
