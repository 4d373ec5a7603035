"""Certify, audit and report the privacy claims of differentially private algorithms.

The public names stand in ``__init__.pyi``; everything else may change. They are loaded when they
are first used, so that ``import dpaudit`` stays quick.
"""

import lazy_loader

__version__ = "0.2.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
