"""Gaussian processes on finite domains: kernels, exact and Nyström posteriors, information gain."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
