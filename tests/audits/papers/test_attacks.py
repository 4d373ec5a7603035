"""Which algorithms have an attack of their own."""

from __future__ import annotations

import math

import pytest

from audits.papers.attacks import CONFIDENCE, attacks
from dpaudit.base.errors import InputError
from private_bo.federated import DPFTS, DPFTSDE
from private_bo.joint import JointGPUCB, LocalJointGPUCB
from private_bo.local import LDPTGPUCB
from private_bo.outsourced import CertifiedCurator, Curator


def test_local_algorithms_need_no_attack_of_their_own():
    assert attacks(LDPTGPUCB()) == ()


@pytest.mark.parametrize("subject", [DPFTS, DPFTSDE, JointGPUCB, LocalJointGPUCB])
def test_these_have_one(subject):
    assert attacks.dispatch(subject) is not attacks.dispatch(LDPTGPUCB)


def test_the_papers_curator_is_refuted_by_its_column_space():
    found = attacks(Curator())
    assert found[0].epsilon_lower == math.inf
    assert all(audit.confidence in (None, CONFIDENCE) for audit in found)


def test_the_certified_curator_is_not():
    found = attacks(CertifiedCurator())
    assert found
    assert not any(audit.refuted for audit in found)


def test_another_curator_than_the_one_attacked_is_refused():
    with pytest.raises(InputError, match="dimensions of the grid"):
        attacks(Curator(columns=3))
