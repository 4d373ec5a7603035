"""Budgets at run time: filters that refuse in time.

Parameters may be chosen from what was released before. Composition theorems for parameters fixed in
advance do not cover that; those used here do, and each is named where it is used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
