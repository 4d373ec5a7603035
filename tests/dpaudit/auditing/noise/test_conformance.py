"""False alarms at the stated rate, and every planted fault named.

Exact p-values under the declared law, small ones under any other.
Leaks in the bits are found; exact samplers and sound code have none.
Noise that comes more than once is found; sound noise and coarse outputs are left alone.
"""

from __future__ import annotations

import numpy as np
import pytest
from examples import gaussian_invocation
from scipy import stats

from dpaudit import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Plan,
    RandomizedResponse,
)
from dpaudit.auditing.noise.conformance import (
    conformance,
    float_findings,
    lsb_event,
    p_value,
    repeats,
    scale_p_value,
    scale_ratio,
    shape_p_value,
)
from dpaudit.auditing.noise.tails import laplace_tails, normal_tails
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


LAWS = {"laplace": laplace_tails, "normal": normal_tails}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("statistic", [scale_p_value, shape_p_value])
def test_p_values_are_uniform_under_the_declared_law(law, statistic):
    draw = getattr(np.random.default_rng(3), law)
    found = [statistic(LAWS[law](draw(size=12))) for _ in range(400)]
    assert stats.kstest(found, "uniform").pvalue > 1e-6


@pytest.mark.parametrize("law", LAWS)
def test_the_smaller_of_both_is_doubled(law):
    draws = getattr(np.random.default_rng(5), law)(size=30)
    tails = LAWS[law](draws)
    smaller = min(scale_p_value(tails), shape_p_value(tails))
    assert p_value(tails) == min(1.0, 2 * smaller)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_wrong_scale_shows_in_the_scale_and_in_the_ratio(law, factor):
    draws = factor * getattr(np.random.default_rng(6), law)(size=2000)
    tails = LAWS[law](draws)
    assert scale_p_value(tails) < 1e-9
    assert scale_ratio(tails) == pytest.approx(factor, rel=0.15)


def test_a_wrong_shape_shows_although_the_scale_is_right():
    rng = np.random.default_rng(7)
    shifted = rng.laplace(size=4000)
    shifted[shifted < 0] /= 3
    shifted *= 1 / np.abs(shifted).mean()
    assert shape_p_value(laplace_tails(shifted)) < 1e-9
    assert scale_p_value(laplace_tails(shifted)) > 1e-6


def test_impossible_draws_refute_at_once():
    tails = Tails(np.zeros(3), np.array([True, False, True]), np.empty(0))
    assert scale_p_value(tails) == p_value(tails) == 0.0
    assert scale_ratio(tails) is None


LAPLACE = Laplace(1.0)
GAUSSIAN = Gaussian.calibrated(epsilon=1.0, delta=1e-5, sensitivity=1.0)


@pytest.mark.parametrize(
    ("mechanism", "probability"), [(LAPLACE, 0.2716), (GAUSSIAN, 0.0709)], ids=["laplace", "normal"]
)
def test_the_event_has_the_known_probabilities(mechanism, probability):
    rng = np.random.default_rng(0)
    size = 200_000
    seen = lsb_event(mechanism.release_many(0.0, size, rng)).mean()
    assert abs(seen - probability) < 5 * np.sqrt(probability / size)
    assert not lsb_event(mechanism.release_many(1.0, size, rng)).any()


def test_numpy_laplace_is_flagged_within_100_draws():
    for seed in range(30):
        report = float_findings(LAPLACE.release_many, epsilon=1.0, seed=seed)
        assert report.draws == 100
        assert [f.rule for f in report.findings] == ["float-lsb"]
        assert report.counts[1] == 0
    assert "p = " in report.findings[0].message


def test_numpy_normal_is_flagged_within_2000_draws():
    for seed in range(10):
        report = float_findings(GAUSSIAN.release_many, epsilon=1.0, delta=1e-5, seed=seed)
        assert report.findings
        assert report.draws <= 2000


def test_samplers_on_a_grid_have_no_finding():
    on_grid = float_findings(
        lambda x, n, rng: x + np.rint(rng.laplace(size=n) * 2**30) / 2**30,
        epsilon=1.0,
        draws=100_000,
    )
    assert on_grid.findings == ()
    assert on_grid.draws == 100_000
    assert on_grid.counts == (0, 0)
    assert float_findings(DiscreteLaplace(1.0).release_many, epsilon=1.0).findings == ()


def test_secure_noise_has_no_finding():
    pytest.importorskip("opendp", reason="the extra 'secure' is not installed")
    from dpaudit.ledger import SecureNoise

    noise = SecureNoise()
    for mechanism, delta in ((LAPLACE, 0.0), (GAUSSIAN, 1e-5)):
        call = gaussian_invocation(mechanism=mechanism)
        report = float_findings(
            lambda x, n, rng, call=call: noise.release_many(call, x, n),
            epsilon=1.0,
            delta=delta,
            draws=20_000,
        )
        assert report.findings == ()
        assert report.counts == (0, 0)
    draws = noise.release_many(gaussian_invocation(mechanism=LAPLACE), 0.0, 20_000)
    assert repeats(draws) == []


def test_outputs_must_be_numbers():
    with pytest.raises(InputError, match="must be"):
        float_findings(lambda x, n, rng: np.zeros((n, 2)), epsilon=1.0)


def test_few_seeds_and_shared_noise_are_found():
    fixed = 1.0 + np.full(50, np.random.default_rng(3).laplace())
    assert [f.rule for f in repeats(fixed)] == ["seed-reuse"]
    assert "the seed is fixed" in repeats(fixed)[0].message
    table = np.random.default_rng(0).laplace(size=4096)
    few = table[np.random.default_rng(1).integers(4096, size=2000)]
    (finding,) = repeats(few)
    assert finding.rule == "seed-reuse"
    shared = np.arange(8) + np.random.default_rng(2).normal(size=(10, 1))
    (finding,) = repeats(shared)
    assert finding.rule == "noise-reuse"
    one_pair = np.random.default_rng(2).normal(size=(10, 8))
    one_pair[:, 5] = one_pair[:, 2] + 1
    assert "Entries 2 and 5" in repeats(one_pair)[0].message


BOUND = np.sqrt(2) / 3


@pytest.mark.parametrize(
    "release",
    [
        lambda noise: np.clip(noise, -BOUND, BOUND),
        lambda noise: np.clip(noise, 0, 1),
        lambda noise: np.maximum(noise, 0),
        lambda noise: np.where(np.arange(len(noise)) % 10, 0.0, noise),
        lambda noise: np.round(noise, 2),
        lambda noise: np.clip(noise.reshape(-1, 5), -BOUND, BOUND),
        lambda noise: np.full(noise.shape, 0.5),
    ],
)
def test_atoms_and_bounds_are_no_reused_noise(release):
    assert repeats(release(np.random.default_rng(6).laplace(size=2000))) == []


@pytest.mark.parametrize("seeds", [2, 3, 16, 500])
def test_few_seeds_are_found_however_few(seeds):
    rng = np.random.default_rng(7)
    (finding,) = repeats(rng.laplace(size=seeds)[rng.integers(seeds, size=2000)])
    assert finding.rule == "seed-reuse"


def test_what_does_not_depend_on_the_data_is_no_reused_noise():
    noise = np.random.default_rng(8).laplace(size=(50, 1))
    entries, elsewhere = noise + np.array([0, 1]), noise + np.array([0.25, 1.25])
    assert repeats(entries, elsewhere) == []
    assert [each.rule for each in repeats(entries, noise + np.array([0, 2]))] == ["noise-reuse"]
    bound = np.full(50, BOUND)
    assert repeats(bound, bound) == []
    assert [each.rule for each in repeats(bound, bound + 1)] == ["seed-reuse"]


def test_sound_noise_is_not_called_reused():
    rng = np.random.default_rng(4)
    for outputs in (
        rng.laplace(size=20_000),
        rng.normal(size=(500, 40)),
        1e9 + rng.laplace(size=20_000),
        rng.integers(5, size=1000).astype(float),
        rng.integers(5, size=1000) / 2,
    ):
        assert repeats(outputs) == []
    assert repeats(np.ones(1)) == []
