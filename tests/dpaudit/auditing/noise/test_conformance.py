"""False alarms at the stated rate, and every planted fault named."""

import numpy as np
import pytest
from examples import gaussian_invocation

from dpaudit import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Plan,
    RandomizedResponse,
)
from dpaudit.auditing.noise.conformance import conformance, p_value
from dpaudit.auditing.replaying.recording import Routine
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import (
    BinaryTree,
    ConcentratedBlackBox,
    ContinualGaussian,
    ContinualLaplace,
    ExponentialMechanism,
    Tails,
)


def invocation(mechanism, at, **changes):
    return gaussian_invocation(mechanism=mechanism, at=at, **changes)


class Halved(Laplace):
    """Declares one scale and draws half of it."""

    kind = "halved-laplace"

    def sample(self, values, rng):
        return values + rng.laplace(scale=self.scale / 2, size=values.shape)


def noise_p_value(mechanism, released, value=0.0, *, seed=0):
    """Exact p-value of the declared law, from independent releases of one value."""
    rng, prepared = np.random.default_rng(seed), mechanism.prepare(value)
    return p_value(Tails.joined([mechanism.tails(one, prepared, rng) for one in released]))


MECHANISMS = [
    (Laplace(2.0), 3.0),
    (Gaussian(2.0), [1.0, 2.0]),
    (DiscreteLaplace(1.5), 4),
    (DiscreteGaussian(2.0), 4),
    (RandomizedResponse(0.5, 4), 2),
    (ExponentialMechanism(2.0), [0.0, 0.5, 0.5, 1.0]),
    (
        ContinualLaplace(scale=2.0, factorization=BinaryTree(4), participations=1),
        [1.0, 0.0, 1.0, 1.0],
    ),
    (
        ContinualGaussian(sigma=2.0, factorization=BinaryTree(4), participations=1),
        [1.0, 0.0, 1.0, 1.0],
    ),
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

        def sample(self, values, rng):
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


def test_runs_and_seed_can_be_chosen():
    for wrong in ({"runs": 0}, {"seed": -1}):
        with pytest.raises(InputError, match=f"{next(iter(wrong))} is "):
            conformance(twenty_rounds(wrong=0), 1.0, **wrong)
    first, second = (conformance(twenty_rounds(wrong=7), 1.0, runs=20, seed=4) for _ in range(2))
    assert first == second
    assert first.tested[0].draws == 20
