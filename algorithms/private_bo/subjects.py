"""What can be certified, run and audited: algorithms of papers, and studies of one's own.

``SUBJECTS`` lists them all, for whoever goes through every one of them; the tests of what all
subjects have in common do. Project files name a subject by its module and class.
"""

from __future__ import annotations

from dpaudit import Subject
from private_bo.federated import DPFTS, DPFTSDE
from private_bo.joint import JointGPUCB, LocalJointGPUCB
from private_bo.local import LDPATAGPUCB, LDPTGPUCB, LDPMoMAGPUCB, LDPOneBitGP
from private_bo.outsourced import CertifiedCurator, Curator
from private_bo.own import (
    FederatedStudy,
    JointStudy,
    LocalJointStudy,
    LocalStudy,
    OutsourcedStudy,
    ShuffleStudy,
)
from private_bo.studies import PrivateSearch

SUBJECTS: tuple[type[Subject], ...] = (
    DPFTS,
    DPFTSDE,
    JointGPUCB,
    LDPATAGPUCB,
    LDPMoMAGPUCB,
    LDPOneBitGP,
    LDPTGPUCB,
    LocalJointGPUCB,
    CertifiedCurator,
    Curator,
    FederatedStudy,
    JointStudy,
    LocalJointStudy,
    LocalStudy,
    OutsourcedStudy,
    ShuffleStudy,
    PrivateSearch,
)
