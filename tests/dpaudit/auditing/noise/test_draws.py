"""Draws of code that makes its own noise: recorded, compared with the plan, and never twice."""

import pickle

import numpy as np
from examples import gaussian_invocation

from dpaudit import Gaussian, Laplace, Plan
from dpaudit.auditing.noise.draws import RecordingGenerator, audit_draws, recorded_draws


def plan_of(*laws):
    return Plan.of(
        *(
            gaussian_invocation(mechanism=law, at=f"round {t}")
            for t, law in enumerate(laws, start=1)
        )
    )


def test_draws_are_recorded_with_their_place():
    with recorded_draws() as log:
        rng = np.random.default_rng(3)
        values = rng.normal(1.0, scale=2.0, size=5)
        child = rng.spawn(1)[0].laplace()
    assert isinstance(rng, RecordingGenerator)
    assert np.random.default_rng(3).normal(1.0, 2.0, 5).tolist() == values.tolist()
    assert [draw.method for draw in log.draws] == ["normal", "laplace"]
    assert log.draws[0].parameters == {"loc": 1.0, "scale": 2.0}
    assert log.draws[0].source.split(":")[0].endswith("test_draws")
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


def test_another_law_is_told_by_its_name():
    (finding,) = audit_draws(lambda d, rng: rng.normal(scale=2.0), 0, plan_of(Laplace(2.0)))
    assert finding.rule == "not-the-declared-noise"
    assert "drawn is normal of scale 2.0" in finding.message


def test_uniform_draws_are_no_noise():
    def run(data, rng):
        rng.random(5)
        return rng.uniform(0, 1) + rng.laplace(scale=2.0)

    assert audit_draws(run, 0, plan_of(Laplace(2.0))) == ()


def test_a_recording_generator_travels_with_its_state():
    rng = RecordingGenerator(np.random.PCG64(3))
    rng.laplace()
    assert pickle.loads(pickle.dumps(rng)).laplace() == rng.laplace()
