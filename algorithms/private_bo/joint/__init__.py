"""Joint and local joint differential privacy for GP bandits (Dubey 2021).

Users bring decision sets of their own, and what all others see of a user goes through noisy sums
of features and rewards: by a trusted privatiser with a tree of noise, or by each client itself.
Shipped are :class:`JointGPUCB` (Algorithms 1 and 2) and :class:`LocalJointGPUCB` (Algorithm 3),
each with the noise of the paper's lemma, whose real cost the certificate states, and with the
least noise for the claim, the default. Statistics, factorisations and estimates that need less
noise are options, and ``experiments.ablation`` says what each is worth. Begin with
:mod:`~private_bo.joint.central` and ``parties``, where the pseudocode's lines stand beside the
code, then ``statistics`` for what is released and ``learner`` for what is made of it.
"""

from private_bo.joint.central import JointGPUCB
from private_bo.joint.learner import Estimate, Width
from private_bo.joint.local_joint import Client, LocalJointGPUCB, LocalServer, Parameters, Report
from private_bo.joint.parties import JointPrivatiser, JointServer, OutOfRange
from private_bo.joint.statistics import ContinualNoise, Noise

__all__ = [
    "Client",
    "ContinualNoise",
    "Estimate",
    "JointGPUCB",
    "JointPrivatiser",
    "JointServer",
    "LocalJointGPUCB",
    "LocalServer",
    "Noise",
    "OutOfRange",
    "Parameters",
    "Report",
    "Width",
]
