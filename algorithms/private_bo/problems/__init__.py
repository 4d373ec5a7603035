"""Bandit problems with known truth: synthetic functions and three real data sets."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
