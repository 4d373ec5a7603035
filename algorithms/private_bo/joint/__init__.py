"""Joint and local-joint differential privacy for GP bandits (Dubey 2021)."""

from private_bo.joint.central import JointGPUCB
from private_bo.joint.learner import Estimate, Width
from private_bo.joint.local_joint import LocalJointGPUCB
from private_bo.joint.local_joint_parties import Client, LocalServer, Parameters, Report
from private_bo.joint.noise import ContinualNoise, Noise
from private_bo.joint.parties import JointPrivatiser, JointServer, OutOfRange

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
