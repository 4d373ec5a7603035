"""The algorithms that can be certified, run and audited."""

from __future__ import annotations

from dpaudit import Subject
from private_bo.federated import DPFTS, DPFTSDE
from private_bo.joint import JointGPUCB, LocalJointGPUCB
from private_bo.local import LDPATAGPUCB, LDPTGPUCB, LDPMoMAGPUCB, LDPOneBitGP
from private_bo.outsourced import CertifiedCurator, Curator

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
)
