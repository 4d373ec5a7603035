"""Local differential privacy for Bayesian optimisation (Zhou & Tan 2021), and its baselines."""

from private_bo.local.baselines import ATAGPUCB, GPUCB, TGPUCB, MoMAGPUCB
from private_bo.local.ldp import LDPATAGPUCB, LDPTGPUCB, LDPMoMAGPUCB

__all__ = ["ATAGPUCB", "GPUCB", "LDPATAGPUCB", "LDPTGPUCB", "TGPUCB", "LDPMoMAGPUCB", "MoMAGPUCB"]
