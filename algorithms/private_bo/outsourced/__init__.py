"""Outsourced Bayesian optimisation (Kharkovskii, Dai & Low 2020), and a curator that is private.

In the paper a curator publishes a random projection of its private rows once, and a modeller runs
GP-UCB on it, asking for outputs by row number. Its privacy theorem is false for more rows than
columns; so :class:`Curator` is shipped to the letter, as a claim without a proof, and
``audits/outsourced`` refutes it. :class:`CertifiedCurator` has the same interface, adds noise to
every entry, and is certified; its modeller knows the law of that noise. Begin with
:mod:`~private_bo.outsourced.curators` (Algorithm 1, and the proof of the certified one) and
``modeller`` (the protocol, and Algorithm 2).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
