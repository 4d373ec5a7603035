"""The branch of the paper's curator is a leak of its own."""

from __future__ import annotations

import numpy as np
import pytest

from audits.outsourced.branch import boundary_pair, branch_audit
from private_bo.outsourced import Curator

ALPHA = 1e-6


def test_the_branch_alone_refutes():
    record = branch_audit(Curator(norm_bound=1e4), runs=2000, alpha=ALPHA)
    assert record.refuted


def test_away_from_the_branch_the_size_says_nothing():
    record = branch_audit(Curator(norm_bound=1e4), offset=2.0, runs=2000, alpha=ALPHA)
    assert not record.refuted


def test_the_pair_straddles_the_branch_and_is_legal():
    omega = Curator().omega
    pair = boundary_pair(omega)
    x, x_prime = np.array(pair.x), np.array(pair.x_prime)
    values = [
        np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False)[-1] for rows in (x, x_prime)
    ]
    assert values[0] >= omega > values[1]
    assert np.linalg.norm(x - x_prime, axis=1).max() == pytest.approx(1.0)
