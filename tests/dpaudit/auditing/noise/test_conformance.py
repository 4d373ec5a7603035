"""False alarms at the stated rate, and every planted fault named."""

import numpy as np
import pytest
from examples import gaussian_invocation

from dpaudit import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Ledger,
    Plan,
    RandomizedResponse,
)
from dpaudit.auditing.noise.conformance import conformance, noise_p_value, transcript_conformance
from dpaudit.auditing.noise.draws import RecordingGenerator, audit_draws, recorded_draws
from dpaudit.auditing.replaying.recording import Routine
from dpaudit.errors import InputError, UnsupportedError
from dpaudit.mechanisms import (
    BinaryTree,
    ConcentratedBlackBox,
    ContinualGaussian,
    ContinualLaplace,
    ExponentialMechanism,
)


def invocation(mechanism, at, **changes):
    return gaussian_invocation(mechanism=mechanism, at=at, **changes)


class Halved(Laplace):
    """Declares one scale and draws half of it."""

    kind = "halved-laplace"

    def _sample(self, values, rng):
        return values + rng.laplace(scale=self.scale / 2, size=values.shape)


MECHANISMS = [
    (Laplace(2.0), 3.0),
    (Gaussian(2.0), [1.0, 2.0]),
    (DiscreteLaplace(1.5), 4),
    (DiscreteGaussian(2.0), 4),
    (RandomizedResponse(0.5, 4), 2),
    (ExponentialMechanism(2.0), [0.0, 0.5, 0.5, 1.0]),
    (ContinualLaplace(scale=2.0, factorization=BinaryTree(4)), [1.0, 0.0, 1.0, 1.0]),
    (ContinualGaussian(sigma=2.0, factorization=BinaryTree(4)), [1.0, 0.0, 1.0, 1.0]),
]


@pytest.mark.parametrize(("mechanism", "value"), MECHANISMS, ids=lambda m: getattr(m, "kind", ""))
def test_p_values_of_the_declared_law_are_valid(mechanism, value):
    from scipy.stats import binomtest

    rng = np.random.default_rng(5)
    trials = 100
    small = sum(
        noise_p_value(mechanism, mechanism.release_many(value, 16, rng), value, seed=t) <= 0.1
        for t in range(trials)
    )
    assert binomtest(small, trials, 0.1, alternative="greater").pvalue > 1e-6


@pytest.mark.parametrize(
    ("declared", "drawn"),
    [
        (Laplace(2.0), Laplace(1.0)),
        (Laplace(2.0), Laplace(4.0)),
        (Gaussian(2.0), Gaussian(1.0)),
        (Laplace(2.0), Gaussian(2.0 * np.sqrt(2))),
        (DiscreteLaplace(4.0), DiscreteLaplace(2.0)),
        (DiscreteGaussian(4.0), DiscreteGaussian(2.0)),
        (DiscreteLaplace(2.0), Laplace(2.0)),
        (RandomizedResponse(0.8, 4), RandomizedResponse(0.2, 4)),
    ],
)
def test_other_laws_are_told_apart(declared, drawn):
    released = drawn.release_many(0, 1000, np.random.default_rng(1))
    assert noise_p_value(declared, released, 0) < 1e-5
    assert noise_p_value(drawn, released, 0) > 1e-4


def test_twenty_draws_suffice_for_a_factor_of_two():
    rng = np.random.default_rng(2)
    for declared, drawn in [(Laplace(2.0), Laplace(1.0)), (Gaussian(2.0), Gaussian(1.0))]:
        found = [
            noise_p_value(declared, drawn.release_many(0.0, 20, rng)) < 0.05 for _ in range(100)
        ]
        assert sum(found) > 60


def twenty_rounds(wrong):
    """Twenty rounds, one of which draws half the declared noise although all look the same."""
    laws = [Halved(2.0) if t == wrong else Laplace(2.0) for t in range(1, 21)]
    plan = Plan.of(*(invocation(law, f"round {t}") for t, law in enumerate(laws, start=1)))

    def run(data, ledger, rng):
        released = 0.0
        for t, law in enumerate(laws, start=1):
            released = ledger.release(law, data + 0.5 * released, at=f"round {t}")

    return Routine(plan, run)


def test_a_wrong_scale_in_round_7_of_20_is_named():
    report = conformance(twenty_rounds(wrong=7), 1.0, seed=0)
    (finding,) = report.findings
    assert finding.rule == "not-the-declared-noise"
    assert finding.at == "round 7"
    assert "test_conformance:" in finding.message
    assert 0.35 < report.tested[6].ratio < 0.7
    assert len(report.tested) == 20
    assert conformance(twenty_rounds(wrong=0), 1.0, seed=0).clean


def test_noise_that_the_ledger_gave_out_twice_is_found():
    class Stuck(Laplace):
        kind = "stuck-laplace"

        def _sample(self, values, rng):
            return values + np.random.default_rng(7).laplace(scale=self.scale, size=values.shape)

    law = Stuck(2.0)
    plan = Plan.of(invocation(law, "a"))
    routine = Routine(plan, lambda data, ledger, rng: ledger.release(law, data, at="a"))
    (finding,) = conformance(routine, 0.0, runs=4).findings
    assert finding.rule == "noise-reused"

    one = Laplace(2.0)
    pair = Plan.of(invocation(one, "a"), invocation(one, "b"))

    def run(data, ledger, rng):
        state = ledger.noise._noise._rng.bit_generator.state
        ledger.release(one, data, at="a")
        ledger.noise._noise._rng.bit_generator.state = state
        ledger.release(one, data, at="b")

    (finding,) = conformance(Routine(pair, run), 3.0, runs=8).findings
    assert finding.rule == "noise-reused"
    assert finding.at == "b"


def test_what_declares_no_law_is_listed_as_untested():
    box = ConcentratedBlackBox(0.5)
    with pytest.raises(UnsupportedError, match="no law"):
        noise_p_value(box, [1.0])
    with pytest.raises(UnsupportedError):
        transcript_conformance(lambda d, n, r: np.zeros((n, 1)), 0, [DiscreteLaplace(1.0)])
    with pytest.raises(InputError, match="one entry of the second axis"):
        transcript_conformance(lambda d, n, r: np.zeros((n, 3)), 0, [Laplace(1.0)])


def own_noise(wrong):
    def release(data, size, rng):
        scales = np.full(20, 2.0)
        scales[wrong] = 1.0
        return data + np.arange(20) + rng.laplace(scale=scales, size=(size, 20))

    return release


def test_code_that_draws_its_own_noise_is_localised_from_its_outputs():
    report = transcript_conformance(own_noise(6), 5.0, [Laplace(2.0)] * 20, seed=1)
    assert [f.at for f in report.findings] == ["round 7"]
    everyone = [Gaussian(2.0)] * 20
    sound = transcript_conformance(
        lambda data, size, rng: rng.normal(data, 2.0, (size, 20)), 5.0, everyone, seed=1
    )
    assert sound.clean


def test_a_node_that_is_noised_twice_shows_in_the_spread():
    def release(data, size, rng):
        nodes = rng.normal(scale=2.0, size=(size, 7))
        nodes[:, 4] += rng.normal(scale=2.0, size=size)
        return nodes

    report = transcript_conformance(release, 0.0, [Gaussian(2.0)] * 7, seed=0, runs=400)
    assert [f.at for f in report.findings] == ["round 5"]
    assert 1.2 < report.tested[4].ratio < 1.6


def plan_of(*laws):
    return Plan.of(*(invocation(law, f"round {t}") for t, law in enumerate(laws, start=1)))


def test_draws_are_recorded_with_their_place():
    with recorded_draws() as log:
        rng = np.random.default_rng(3)
        values = rng.normal(1.0, scale=2.0, size=5)
        child = rng.spawn(1)[0].laplace()
    assert isinstance(rng, RecordingGenerator)
    assert np.random.default_rng(3).normal(1.0, 2.0, 5).tolist() == values.tolist()
    assert [draw.method for draw in log.draws] == ["normal", "laplace"]
    assert log.draws[0].parameters == {"loc": 1.0, "scale": 2.0}
    assert log.draws[0].source.split(":")[0].endswith("test_conformance")
    assert log.draws[1].values.tolist() == [child]
    assert type(np.random.default_rng(0)) is np.random.Generator


def test_draws_are_compared_with_the_plan_in_order():
    def run(data, rng):
        return [data + rng.laplace(scale=1.0 if t == 7 else 2.0) for t in range(1, 21)]

    (finding,) = audit_draws(run, 0.0, plan_of(*[Laplace(2.0)] * 20))
    assert finding.at == "round 7"
    assert "laplace of scale 1.0 at" in finding.message
    sound = plan_of(*[Laplace(1.0 if t == 7 else 2.0) for t in range(1, 21)])
    assert audit_draws(run, 0.0, sound) == ()
    vector = audit_draws(lambda d, rng: rng.normal(0, 2.0, 20), 0, plan_of(*[Gaussian(2.0)] * 20))
    assert vector == ()


def test_missing_and_undeclared_draws_are_named():
    plan = plan_of(Laplace(2.0), Laplace(2.0))
    (missing,) = audit_draws(lambda d, rng: rng.laplace(scale=2.0), 0, plan)
    assert missing.rule == "noise-missing"
    assert missing.at == "round 2"

    def node_noised_twice(data, rng):
        first, second = rng.laplace(scale=2.0), rng.laplace(scale=2.0)
        return first, second + rng.laplace(scale=2.0)

    (extra,) = audit_draws(node_noised_twice, 0, plan)
    assert extra.rule == "noise-undeclared"
    assert "declares 2 noisy releases and the code draws noise 3 times" in extra.message


def test_fixed_seeds_and_noise_that_is_used_twice_are_found():
    (fixed,) = audit_draws(lambda d, rng: np.random.default_rng(1).normal(size=4), 0)
    assert fixed.rule == "seed-reused"
    assert "whatever the seed of the run" in fixed.message

    def twice(data, rng):
        seed = int(rng.integers(2**32))
        return [np.random.default_rng(seed).laplace(scale=b) for b in (1.0, 3.0)]

    assert [f.rule for f in audit_draws(twice, 0)] == ["seed-reused"]

    def copied(data, rng):
        state = rng.bit_generator.state
        first = rng.laplace(scale=1.0)
        rng.bit_generator.state = state
        return first, rng.laplace(scale=3.0)

    assert [f.rule for f in audit_draws(copied, 0)] == ["noise-reused"]
    assert audit_draws(lambda d, rng: rng.laplace(size=100), 0) == ()


def test_recording_ledgers_are_ledgers():
    seen = []

    def run(data, ledger, rng):
        seen.append(isinstance(ledger, Ledger))
        ledger.release(Laplace(2.0), data, at="round 1")

    assert conformance(Routine(plan_of(Laplace(2.0)), run), 0.0, runs=1).clean
    assert seen == [True]
