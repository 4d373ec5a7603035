"""The engine against mechanisms whose true privacy loss is known."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit import AuditPair, Gaussian, InputError, Laplace, RandomizedResponse
from dpaudit.auditing import BlackBox, WhiteBox, audit_release
from dpaudit.mechanisms import GaussianPair, LaplacePair

BOUND, NOISE_RANGE = 2.0, 1.0
CURATOR = Laplace(2 * BOUND, clip=(-BOUND, BOUND))
ENDS = AuditPair(BOUND, -BOUND)


def audit(mechanism, pair, **settings):
    settings = {"epsilon": 1.0, "seed": 7, **settings}
    return audit_release(mechanism.release_many, pair, **settings)


class TestVerdicts:
    @pytest.mark.parametrize("score", [None, WhiteBox(CURATOR, BOUND, -BOUND)])
    def test_curator_is_not_refuted(self, score):
        record = audit(CURATOR, ENDS, score=score)
        assert not record.refuted
        assert 0.85 < record.epsilon_lower <= 1.0

    @pytest.mark.parametrize(
        ("mechanism", "pair", "true_epsilon"),
        [
            (Laplace(2 * BOUND), AuditPair(20.0, -20.0), 10.0),
            (Laplace(BOUND, clip=(-BOUND, BOUND)), ENDS, 2.0),
            (
                Laplace(2 * BOUND),
                AuditPair(BOUND + NOISE_RANGE, -BOUND - NOISE_RANGE),
                1.5,
            ),
        ],
        ids=["no clip", "half the scale", "range forgets the noise"],
    )
    def test_broken_curators_are_refuted(self, mechanism, pair, true_epsilon):
        for score in (None, WhiteBox(CURATOR, pair.x, pair.x_prime)):
            record = audit(mechanism, pair, score=score)
            assert record.refuted
            assert 1.0 < record.epsilon_lower <= true_epsilon
            assert record.details["rejected_by"] == ["point"]

    def test_false_alarms_of_a_claim_that_holds_with_equality(self):
        # The event is an atom of the likelihood ratio with p = e^ε q exactly: the hardest null.
        records = [audit(CURATOR, ENDS, seed=seed, runs=300, confidence=0.8) for seed in range(12)]
        # More has probability at most 1e-6.
        assert sum(record.refuted for record in records) <= binom.isf(1e-6, 12, 0.2)

    def test_false_alarms_against_the_whole_curve(self):
        curve = LaplacePair(1).delta
        records = [
            audit(CURATOR, ENDS, seed=seed, runs=250, confidence=0.8, curve=curve, score=score)
            for seed in range(12)
            for score in (None, WhiteBox(CURATOR, BOUND, -BOUND))
        ]
        # More has probability at most 1e-6, also if the two scores of a seed err together.
        assert sum(record.refuted for record in records) <= 2 * binom.isf(1e-6, 12, 0.2)

    def test_bounds_are_sharp(self):
        def median(mechanism, **claim):
            bounds = [
                audit(mechanism, AuditPair(0.0, 1.0), seed=seed, **claim).epsilon_lower
                for seed in range(12)
            ]
            return np.median(bounds)

        assert median(Laplace(1.0)) >= 0.93
        assert median(Gaussian(3.7306), delta=1e-5) >= 0.40

    def test_deterministic_code_has_a_large_finite_bound(self):
        record = audit_release(
            BlackBox(lambda data, rng: data), AuditPair(0.0, 1.0), epsilon=3.0, seed=1
        )
        assert record.refuted
        assert 7 < record.epsilon_lower < 10
        assert record.details["deterministic"]

    def test_code_that_draws_elsewhere_is_refused(self):
        fresh = np.random.default_rng(1)
        with pytest.raises(InputError, match="ignores its rng"):
            audit_release(
                BlackBox(lambda data, rng: data + fresh.laplace()), AuditPair(0, 1), epsilon=1.0
            )

    def test_a_fixed_seed_is_refuted(self):
        def fixed(data, rng, size):
            return data + np.random.default_rng(0).laplace(size=size) * np.ones(size)

        one = BlackBox(lambda data, rng: data + np.random.default_rng(0).laplace())
        for box in (one, BlackBox(fixed)):
            record = audit_release(box, AuditPair(0.0, 1.0), epsilon=1.0, seed=1, runs=1000)
            assert record.refuted

    def test_discrete_outputs(self):
        record = audit(RandomizedResponse(0.25, k=4), AuditPair(2, 1), epsilon=2.0)
        assert record.refuted
        assert 2.2 < record.epsilon_lower <= math.log(1 + 4 * 0.75 / 0.25)

    def test_last_bits_of_floats_are_no_evidence_against_the_claim(self):
        # On y > 2 the exact ratio is constant; its rounding error depends on how y was drawn.
        record = audit(
            CURATOR,
            ENDS,
            seed=3,
            runs=20_000,
            curve=LaplacePair(1).delta,
            score=WhiteBox(CURATOR, BOUND, -BOUND),
        )
        assert record.details["curve"]["e_value"] < 20


class TestCurve:
    @pytest.mark.parametrize(("factor", "refuted"), [(0.5, True), (1.0, False)])
    def test_needs_far_fewer_runs_than_the_point(self, factor, refuted):
        claimed = Gaussian(3.7306)
        record = audit(
            Gaussian(3.7306 * factor),
            AuditPair(1.0, 0.0),
            delta=1e-5,
            runs=2000,
            curve=GaussianPair(1 / claimed.sigma).delta,
            score=WhiteBox(claimed, 1.0, 0.0),
        )
        assert record.refuted is refuted
        assert record.details["curve"]["refuted"] is refuted
        if refuted:
            assert record.details["curve"]["pairs"] < 1500
            assert "curve" in record.event

    def test_error_rates_add_up(self):
        record = audit(Laplace(1.0), AuditPair(0.0, 1.0), curve=LaplacePair(1).delta, runs=1000)
        assert sum(record.details["error_rates"].values()) == pytest.approx(0.05)

    def test_stops_early(self):
        settings = {"curve": LaplacePair(1).delta, "runs": 50_000}
        late = audit(Laplace(0.5), AuditPair(0.0, 1.0), **settings)
        early = audit(Laplace(0.5), AuditPair(0.0, 1.0), stop_early=True, **settings)
        assert late.refuted
        assert early.refuted
        assert late.runs == 50_000
        assert early.runs < 2000
        assert 0 < early.epsilon_lower <= 2

    def test_stops_early_without_a_curve(self):
        early = audit(Laplace(0.4), AuditPair(0.0, 1.0), stop_early=True, runs=20_000)
        assert early.refuted
        assert 1 < early.epsilon_lower <= 2.5
        assert early.runs < 10_000
