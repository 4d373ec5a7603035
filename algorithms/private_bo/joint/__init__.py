"""Joint and local joint differential privacy for GP bandits (Dubey 2021).

Users bring decision sets of their own, and what all others see of a user goes through noisy sums of
features and rewards: by a trusted privatiser with a tree of noise, or by each client itself.
Shipped are :class:`JointGPUCB` (Algorithms 1 and 2) and :class:`LocalJointGPUCB` (Algorithm 3),
each with the noise of the paper's lemma, whose real cost the certificate states, and with the least
noise for the claim, the default. Statistics, factorisations and estimates that need less noise are
options. Begin with :mod:`~private_bo.joint.central` and ``parties``, where the pseudocode's lines
stand beside the code, ``local_joint`` likewise, then ``statistics`` for what is released and what
is made of it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
