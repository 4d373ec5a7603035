"""Libraries as they are: every noise that they draw, seen as an invocation of a plan.

An application, of ``dpaudit observe`` and of code that lets a ledger observe a library's draws.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
