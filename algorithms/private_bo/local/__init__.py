"""Local differential privacy for Bayesian optimisation (Zhou & Tan 2021).

The paper lets every user add Laplace noise to the own reward, and asks which learners bear the
heavy tails that this noise has: truncation by feature, truncation by reward, or medians of means.
Shipped are LDP-ATA-GP-UCB, LDP-TGP-UCB and LDP-MoMA-GP-UCB, with the clip that their claim needs
and the paper takes for granted. Beside them stand the non-private comparators on the same learners:
GP-UCB, TGP-UCB, ATA-GP-UCB and MoMA-GP-UCB. Begin with :mod:`~private_bo.local.policies`, which has
Algorithms 2, 1 and 3 line by line, with their thresholds and widths. What is released, claimed and
audited is in ``ldp`` and ``one_bit``; ``tuned_training`` is an example. LDPOneBitGP is of
no paper: it releases one bit of a reward at the same ε and looks ahead, without widths.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
