"""Problems of one's own: private Bayesian optimisation of an unknown objective, by ask and tell.

Beside the papers' algorithms, and with their parts, this is what people use: spaces that are boxes
or lists of points, objectives that nobody knows, users who answer late or never. Each trust model
is a study: public configuration that can be certified, rehearsed, run and audited, and that makes
the parties, of which only the one at the ledger's door holds anything private. Begin with
:mod:`~private_bo.own.call`, then ``local`` and ``server``; ``docs/own-problems.md`` has an
example of each.
"""

from private_bo.own.call import Optimised, optimise, study
from private_bo.own.federated import Agent, FederatedStudy
from private_bo.own.joint import JointStudy, Privatiser
from private_bo.own.local import Device, LocalStudy
from private_bo.own.local_joint import LocalJointServer, LocalJointStudy
from private_bo.own.outsourced import OutsourcedModeller, OutsourcedStudy
from private_bo.own.server import LandmarkFeatures, Question, Released, Server
from private_bo.own.spaces import BoxSpace, PointSpace

__all__ = [
    "Agent",
    "BoxSpace",
    "Device",
    "FederatedStudy",
    "JointStudy",
    "LandmarkFeatures",
    "LocalJointServer",
    "LocalJointStudy",
    "LocalStudy",
    "Optimised",
    "OutsourcedModeller",
    "OutsourcedStudy",
    "PointSpace",
    "Privatiser",
    "Question",
    "Released",
    "Server",
    "optimise",
    "study",
]
