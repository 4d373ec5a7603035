"""Problems of one's own: private Bayesian optimisation of an unknown objective, by ask and tell.

Beside the papers' algorithms, and with their parts, this is what people use: spaces that are boxes
or lists of points, objectives that nobody knows, users who answer late or never. Each trust model
is a study: public configuration that can be certified, rehearsed, run and audited, and that makes
the parties, of which only the one at the ledger's door holds anything private. Begin with
:mod:`~private_bo.own.call`, then ``answers`` and ``server``; ``docs/own-problems.md`` has an
example of each.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
