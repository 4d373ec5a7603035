"""The engine against mechanisms whose true privacy loss is known."""

import json
import math
import re
from functools import partial

import numpy as np
import pytest

from dpaudit import AuditPair, Gaussian, InputError, Laplace, RandomizedResponse
from dpaudit.auditing import BlackBox, WhiteBox, audit_release
from dpaudit.auditing.distinguishing.scores import LinearScore
from dpaudit.auditing.evidence.events import pilot_size
from dpaudit.auditing.evidence.power import fewest_runs
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
        records = [audit(CURATOR, ENDS, seed=seed, runs=300, confidence=0.8) for seed in range(30)]
        # P(Bin(30, 0.2) > 18) < 1e-6
        assert sum(record.refuted for record in records) <= 18

    def test_false_alarms_against_the_whole_curve(self):
        curve = LaplacePair(1).delta
        records = [
            audit(CURATOR, ENDS, seed=seed, runs=400, confidence=0.8, curve=curve, score=score)
            for seed in range(12)
            for score in (None, WhiteBox(CURATOR, BOUND, -BOUND))
        ]
        # P(Bin(24, 0.2) > 16) < 1e-6
        assert sum(record.refuted for record in records) <= 16

    def test_bounds_are_sharp(self):
        def median(mechanism, **claim):
            bounds = [
                audit(mechanism, AuditPair(0.0, 1.0), seed=seed, **claim).epsilon_lower
                for seed in range(5)
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

    def test_a_fixed_seed_is_refuted(self):
        def fixed(data, rng, size):
            return data + np.random.default_rng(0).laplace(size=size) * np.ones(size)

        one = BlackBox(lambda data, rng: data + np.random.default_rng(0).laplace())
        assert audit_release(one, AuditPair(0.0, 1.0), epsilon=1.0, seed=1).refuted
        assert audit_release(BlackBox(fixed), AuditPair(0.0, 1.0), epsilon=1.0, seed=1).refuted

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


class TestPower:
    def test_what_would_have_been_found_is_found(self):
        record = audit(Laplace(1.0), AuditPair(0.0, 1.0))
        noise = float(record.power.split(" %")[0].split()[-1]) / 100
        assert 0.03 < noise < 0.15
        found = [
            audit(Laplace(1 - noise), AuditPair(0.0, 1.0), seed=seed).refuted for seed in range(10)
        ]
        # With probability 0.9 each: P(Bin(10, 0.9) < 4) < 1e-5, and forecasts are rough.
        assert sum(found) >= 4

    @pytest.mark.parametrize("curve", [None, LaplacePair(1).delta])
    def test_sequential_audits_have_one_too(self, curve):
        record = audit(Laplace(1.0), AuditPair(0.0, 1.0), stop_early=True, curve=curve)
        noise = float(record.power.split(" %")[0].split()[-1]) / 100
        assert 0.05 < noise < 0.4

    def test_a_fixed_score_of_vectors_forecasts_no_noise_without_a_pilot(self):
        """Only scores were kept, and a weighted sum cannot be undone."""
        score = LinearScore((1.0, 1.0))
        pair = AuditPair([0.0, 0.0], [0.5, 0.5])
        record = audit(Laplace(1.0), pair, score=score, stop_early=True, runs=500)
        assert not record.refuted
        assert "%" not in record.power

    def test_refutations_need_none(self):
        assert audit(Laplace(0.5), AuditPair(0.0, 1.0)).power == ""

    def test_discrete_noise_has_no_size(self):
        record = audit(RandomizedResponse.calibrated(epsilon=1.0), AuditPair(0, 1))
        assert "noise" not in record.power.lower()
        assert "true ε" in record.power

    @pytest.mark.parametrize("shape", [(), (3,)])
    @pytest.mark.parametrize("learn", [None, False])
    def test_the_least_number_of_runs_is_one_number(self, shape, learn):
        def release(data, size, rng):
            return data + rng.laplace(size=(size, *shape))

        score = LinearScore((1.0,) * math.prod(shape)) if learn is False else None
        settings = {"epsilon": 0.5, "score": score, "learn": learn, "seed": 1}
        stated = set()
        for runs in range(1, 24):
            try:
                assert audit_release(release, AuditPair(0.0, 1.0), runs=runs, **settings)
                assert min(stated) <= runs
            except InputError as refused:
                stated.add(int(re.search(r"at least (\d+) are needed", str(refused))[1]))
                assert runs < min(stated)
        assert len(stated) == 1

    def test_the_least_number_of_runs_can_refute(self):
        # All outputs differ: the fewest runs that are accepted refute, if the pilot helps at all.
        for epsilon in (0.5, 1.0, 3.0):
            with pytest.raises(InputError, match="at least") as refused:
                audit(Laplace(1e-3), AuditPair(0.0, 1.0), epsilon=epsilon, runs=1)
            least = int(re.search(r"at least (\d+)", str(refused.value))[1])
            tested = least - pilot_size(least)
            assert tested >= fewest_runs(epsilon, 0.0, 0.05)
            assert tested - 1 < fewest_runs(epsilon, 0.0, 0.05)

    def test_too_few_runs_say_how_many_are_needed(self):
        with pytest.raises(InputError, match=r"runs is 5;.*at least (\d+) are needed"):
            audit(Laplace(1.0), AuditPair(0.0, 1.0), runs=5)
        with pytest.raises(InputError, match="at least 73315 are needed"):
            audit(Laplace(1.0), AuditPair(0.0, 1.0), epsilon=10.0)
        with pytest.raises(InputError, match="no number of runs could"):
            audit(Laplace(1.0), AuditPair(0.0, 1.0), epsilon=100.0)

    def test_the_needed_runs_suffice(self):
        identity = BlackBox(lambda data, rng: data)
        with pytest.raises(InputError) as caught:
            audit_release(identity, AuditPair(0, 1), epsilon=2.0, runs=10, seed=0)
        needed = int(str(caught.value).split("at least ")[1].split()[0])
        settings = {"epsilon": 2.0, "seed": 0}
        assert audit_release(identity, AuditPair(0, 1), runs=needed, **settings).refuted


class TestRecord:
    def test_is_strict_json_and_replays(self):
        record = audit(Laplace(0.5), AuditPair([0.0], [1.0], "a row"), seed=None, runs=500)
        text = json.dumps(record.to_dict(), allow_nan=False)
        assert json.loads(text)["pair"] == {"x": [0.0], "x_prime": [1.0]}
        again = audit(Laplace(0.5), AuditPair([0.0], [1.0]), seed=record.seed, runs=500)
        assert again == record

    def test_arrays_are_told_apart_by_a_learned_score(self):
        # Noise of one coordinate is copied into another: neither alone leaks more than claimed.
        def copied(data, rng, size):
            noise = rng.laplace(size=size)
            return np.stack([data + noise, noise + 1e-3 * rng.normal(size=size)], axis=1)

        record = audit_release(
            BlackBox(copied), AuditPair(0.0, 1.0), epsilon=1.0, runs=4000, seed=2
        )
        assert record.refuted
        assert record.method.startswith("learned score")

    @pytest.mark.parametrize(
        "wrong",
        [
            {"epsilon": -1.0},
            {"epsilon": math.nan},
            {"delta": 1.0},
            {"runs": 0},
            {"runs": 10.5},
            {"confidence": 1.0},
            {"seed": -1},
            {"workers": 0},
            {"timeout": 0},
        ],
    )
    def test_bad_settings(self, wrong):
        (name,) = wrong
        with pytest.raises(InputError, match=name):
            audit(Laplace(1.0), AuditPair(0.0, 1.0), **wrong)


class TestWorkers:
    def test_any_number_gives_the_same(self):
        release = partial(_noisy, 0.7)
        settings = {"epsilon": 1.0, "runs": 600, "seed": 5, "curve": LaplacePair(1).delta}
        alone = audit_release(release, AuditPair(0.0, 1.0), **settings)
        assert audit_release(release, AuditPair(0.0, 1.0), workers=2, **settings) == alone


def _noisy(scale, data, size, rng):
    return data + rng.laplace(scale=scale, size=size)
