"""Accountants that add numbers: pure, Gaussian, zCDP, Rényi and moments; and a recursion."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
