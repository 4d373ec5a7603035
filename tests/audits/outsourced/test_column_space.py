"""The column-space attack: it refutes the paper's curator and spares the certified one."""

from __future__ import annotations

import math

import pytest

from audits.outsourced.canaries import canary_audit
from audits.outsourced.column_space import (
    ColumnSpaceScore,
    column_space_audit,
    disjoint_supports,
)
from audits.outsourced.neighbours import Neighbours, Referenced, problem_rows
from dpaudit.auditing import audit_release
from private_bo.outsourced import CertifiedCurator, Curator, RowNoise

EPSILONS = (math.exp(1.1), 0.1)
ALPHA = 1e-6


def paper(epsilon, problem="taipei", dimension=15):
    return Curator(epsilon, 1e-5, dimension, problem_rows(problem).shape[1])


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_supports_are_disjoint(epsilon):
    record = disjoint_supports(paper(epsilon), Neighbours.of("taipei"))
    assert record.refuted
    assert record.epsilon_lower == math.inf
    assert record.details["sine_of_largest_angle"] > 1e6 * record.details["rounding"]


def test_residuals_tell_neighbours_apart():
    record = column_space_audit(paper(0.1), Neighbours.of("taipei"), alpha=ALPHA)
    assert record.refuted
    own, other = record.details["residuals_on_x"].values()
    assert own["largest"] < 1e-8 * other["least"]


def test_one_pair_needs_more_releases_at_a_large_epsilon():
    """20 + 20 faultless answers are no proof against ε = e^1.1, and none is pretended."""
    record = column_space_audit(paper(EPSILONS[0]), Neighbours.of("taipei"), alpha=ALPHA)
    assert not record.refuted
    # A mechanism of that ε may answer all of them rightly with chance ((1 - 1/e^ε))^20.
    assert record.details["p_value"] == pytest.approx((1 - math.exp(-EPSILONS[0])) ** 20, 1e-2)
    needed = record.details["fewest_releases_a_side"]
    more = column_space_audit(
        paper(EPSILONS[0]), Neighbours.of("taipei"), releases=needed + 20, alpha=ALPHA
    )
    assert more.refuted


def test_the_score_serves_the_engine():
    neighbours = Neighbours.of("taipei")
    score = ColumnSpaceScore.of(*(neighbours.data(moved=moved) for moved in (False, True)))
    curator = paper(0.1, dimension=3)
    record = audit_release(
        Referenced(curator),
        neighbours.pair(),
        epsilon=curator.epsilon,
        delta=curator.delta,
        runs=60,
        confidence=1 - ALPHA,
        seed=0,
        score=score,
    )
    assert record.refuted


def test_no_pair_of_equal_column_spaces():
    """A row that does not move gives nothing to find."""
    still = Neighbours("taipei", 0, (0.0, 0.0))
    assert not disjoint_supports(paper(0.1), still).refuted


@pytest.mark.parametrize("noise", [RowNoise.LAPLACE, RowNoise.GAUSSIAN])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_attack_refutes(noise, epsilon):
    curator = CertifiedCurator(epsilon, 1e-5, noise=noise)
    assert not column_space_audit(curator, Neighbours.of("taipei"), releases=100).refuted
    assert not canary_audit(curator, "taipei").refuted
