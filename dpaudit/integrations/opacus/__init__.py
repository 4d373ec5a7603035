"""Trainings with opacus in a ledger, and plans from and to the history of its accountant.

Only :func:`attach` and what it returns need opacus.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
