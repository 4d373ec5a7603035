"""Many canaries in one release: the paper's curator gives all of them away."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from audits.outsourced.canaries import canary_audit, reconstructed
from audits.outsourced.neighbours import problem_rows
from dpaudit.mechanisms import Gaussian
from private_bo.outsourced import CertifiedCurator, Curator

EPSILONS = (math.exp(1.1), 0.1)
ALPHA = 1e-6


def paper(epsilon, problem="taipei", dimension=15):
    return Curator(epsilon, 1e-5, dimension, problem_rows(problem).shape[1])


@dataclass(frozen=True)
class CarelessCurator(CertifiedCurator):
    """States the claim of its parent and adds far too little noise."""

    @property
    def mechanism(self):
        return Gaussian(0.05)


@pytest.mark.parametrize("problem", ["grid", "taipei"])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_few_releases_refute(problem, epsilon):
    record = canary_audit(paper(epsilon, problem), problem, alpha=ALPHA)
    assert record.refuted
    assert record.runs <= 20
    assert record.details["p_value"] < ALPHA
    assert record.details["largest_error_of_a_row"] < 1e-9


def test_reconstruction_is_exact_in_both_branches():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 3))
    known = np.arange(5)
    for bound, epsilon in ((100.0, 0.1), (1e7, 1e6)):
        curator = Curator(epsilon, 1e-5, 6, 3, bound)
        (release,) = curator.audit_release(rows, 1, rng)
        np.testing.assert_allclose(reconstructed(release, rows[known], known), rows, atol=1e-8)


def test_too_little_noise_is_found():
    curator = CarelessCurator(EPSILONS[0], 1e-5)
    assert canary_audit(curator, "taipei").refuted
