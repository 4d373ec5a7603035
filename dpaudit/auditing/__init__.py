"""Auditing: attacks on running code, as experiments with a stated error rate.

>>> import numpy as np
>>> from dpaudit import AuditPair, Laplace
>>> half = Laplace(scale=0.5)
>>> record = audit_release(half.release_many, AuditPair(0.0, 1.0), epsilon=1.0, runs=2000, seed=1)
>>> record.refuted, 1.5 < record.epsilon_lower < 2
(True, True)
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
