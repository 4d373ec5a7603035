"""Scores against closed forms of the likelihood ratio."""

import numpy as np
import pytest
from score_conformance import ScoreConformance

from dpaudit import AuditPair, Claim, Gaussian, InputError, Laplace, RandomizedResponse
from dpaudit.auditing import (
    AtomScore,
    BlackBox,
    FixedScore,
    Identity,
    LinearScore,
    WhiteBox,
    audit_release,
)


class TestWhiteBox:
    def test_gaussian_ratio_is_linear(self):
        outputs = np.array([[0.5, 2.0], [1.0, -1.0]])
        score = WhiteBox(Gaussian(2.0), [1.0, 0.0], [0.0, 0.0])
        assert score(outputs) == pytest.approx((outputs[:, 0] - 0.5) / 4)

    def test_laplace_ratio_beyond_both_values_is_one_number(self):
        outputs = 2.0 + np.random.default_rng(0).exponential(4.0, size=1000)
        scores = WhiteBox(Laplace(4.0), 2.0, -2.0)(outputs)
        assert np.unique(scores).tolist() == [1.0]

    def test_impossible_outputs(self):
        score = WhiteBox(RandomizedResponse(0.5), 0, 1)
        assert score(np.array([0.0, 7.0]))[1] == 0.0

    def test_is_declined_where_there_is_no_density(self):
        assert WhiteBox.of(Laplace(1.0), AuditPair({"a": 1}, {})) is None
        assert WhiteBox.of(Laplace(1.0), AuditPair([1.0, 2.0], [1.0, 3.0])) is not None


def test_a_linear_score_takes_outputs_of_its_size_alone():
    assert LinearScore((1.0, 2.0))(np.ones((3, 2))).tolist() == [3.0] * 3
    with pytest.raises(InputError, match="3 entries; the score has 2 weights"):
        LinearScore((1.0, 2.0))(np.zeros((3, 3)))


class TestAtoms:
    def test_atoms_are_ordered_by_their_ratio(self):
        x, x_prime = np.repeat([0.0, 1.0, 2.0], [50, 40, 10]), np.repeat([0.0, 2.0], [50, 50])
        score = AtomScore.fit(x, x_prime)
        low, middle, high = score(np.array([2.0, 0.0, 1.0]))
        assert low < middle < high
        assert score(np.array([9.0])).tolist() == [0.0]
        assert score(np.array([-0.0])) == score(np.array([0.0]))

    def test_a_union_of_atoms_beats_any_interval(self):
        def parity(data, rng, size):
            lie = rng.random(size) < 0.2
            return 2.0 * rng.integers(12, size=size) + np.where(lie, 1 - data, data)

        record = audit_release(BlackBox(parity), AuditPair(0, 1), epsilon=1.0, runs=8000, seed=0)
        assert record.refuted
        assert "discrete" in record.method


def noisy(data, size, rng):
    return data + rng.laplace(size=size)


class Numbers(ScoreConformance):
    """Laplace noise of scale 1 on 0 and 1: its claim of ε = 1 is tight."""

    release = staticmethod(noisy)
    pair = AuditPair(1.0, 0.0)
    holds = Claim(1.0)
    broken = Claim(0.5)


class TestIdentityConforms(Numbers):
    score = Identity()


class TestWhiteBoxConforms(Numbers):
    score = WhiteBox(Laplace(1.0), 1.0, 0.0)


class TestFixedConforms(Numbers):
    score = FixedScore(np.cbrt, name="cube root", method="black-box, cube root")


class TestLinearConforms(ScoreConformance):
    score = LinearScore((2.0, 1.0))
    release = staticmethod(lambda data, size, rng: data + rng.laplace(size=(size, 2)))
    pair = AuditPair([0.5, 0.5], [0.0, 0.0])
    holds = Claim(1.0)
    broken = Claim(0.2)


class TestAtomsConform(ScoreConformance):
    score = AtomScore((((0.0,), (1.0,), (2.0,))), (-1.0, 0.0, 1.0))
    release = staticmethod(
        lambda data, size, rng: np.where(rng.random(size) < 0.5, rng.integers(3, size=size), data)
    )
    pair = AuditPair(2, 0)
    holds = Claim(np.log(4) + 1e-9)
    broken = Claim(1.0)
