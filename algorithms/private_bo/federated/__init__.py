"""Federated Thompson sampling with distributed exploration (Dai, Low & Jaillet 2021).

Agents optimise objectives of their own and send vectors that describe what they have learned; a
trusted server samples agents, clips, and broadcasts noisy averages, one for each sub-region.
Shipped are DP-FTS-DE and DP-FTS with the loss that the paper publishes as their claim and the true
sensitivity of every round as their plan, and FTS-DE, FTS and plain Thompson sampling as
comparators. Begin with :mod:`~private_bo.federated.algorithms`, which holds Algorithms 1 and 2 one
below the other; ``settings`` has the public configuration and weights, ``dp_fts_de`` what is
declared and claimed, ``agents`` the agents' own posteriors. The same run over real processes is in
``flower``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
