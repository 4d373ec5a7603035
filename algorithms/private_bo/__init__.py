"""Private Bayesian optimisation: the algorithms of four papers as declared mechanisms.

The public names stand in ``__init__.pyi`` and are loaded when first used. ``SUBJECTS`` is what can
be certified, run and audited.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
