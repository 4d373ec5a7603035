"""The generic engine against the curators, without a score."""

from __future__ import annotations

import math

import numpy as np
import pytest

from audits.outsourced.black_box import black_box_audit, lattice_pair
from private_bo.outsourced import CertifiedCurator, Curator, RowNoise

EPSILONS = (math.exp(1.1), 0.1)
ALPHA = 1e-6


@pytest.mark.parametrize("noise", [RowNoise.LAPLACE, RowNoise.GAUSSIAN])
def test_the_engine_does_not_refute(noise):
    curator = CertifiedCurator(EPSILONS[0], 1e-5, noise=noise)
    pair = curator.audit_pairs()[0]
    assert not black_box_audit(curator, pair, runs=800, confidence=1 - ALPHA).refuted


def test_the_engine_finds_the_leak_without_a_score():
    curator = Curator()
    record = black_box_audit(curator, curator.audit_pairs()[0], runs=3000, confidence=1 - ALPHA)
    assert record.refuted


def test_a_corner_moves_inwards():
    pair = lattice_pair(4)
    difference = np.array(pair.x_prime) - np.array(pair.x)
    assert np.linalg.norm(difference[0]) == pytest.approx(1.0)
    assert not difference[1:].any()
