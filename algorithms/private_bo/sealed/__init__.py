"""Studies that run sealed: each is a SealedSubject with the plan and the policy of its study.

Begin with :mod:`~private_bo.sealed.study`, which says what all of them have in common. The room has
a file for each trust model.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
