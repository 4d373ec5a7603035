"""Continual release of prefix sums: trees, Toeplitz factorisations, and their mechanisms."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
