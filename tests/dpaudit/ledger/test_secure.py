import math
import sys
import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from examples import LAPLACE, gaussian_invocation, response_plan
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpaudit import (
    Contribution,
    DiscreteGaussian,
    DiscreteLaplace,
    FixedSizeSampling,
    Gaussian,
    Laplace,
    Ledger,
    Plan,
    PoissonSampling,
    RandomizedResponse,
    ReplaceOne,
)
from dpaudit.auditing.noise.conformance import p_value
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.ledger import Entry, SecureNoise
from dpaudit.ledger.samplers.exact import laplace_scale, normal_scale
from dpaudit.mechanisms import ExponentialMechanism, LaplaceVector, SparseVector, Tails
from dpaudit.mechanisms.continual import BinaryTree, ContinualGaussian
from dpaudit.plan import TruncatedPoissonSampling

pytest.importorskip("opendp", reason="the extra 'secure' is not installed")

RUNS = 20_000
FALSE_ALARM = 1e-6


def declared(mechanism, sensitivity=1.0):
    return gaussian_invocation(mechanism=mechanism, sensitivity=sensitivity, at="here")


def entry(mechanism):
    return Entry(declared(mechanism), None, "here:1", "opendp")


def kolmogorov(draws, law):
    from scipy.stats import kstest

    return kstest(draws, law).pvalue


def test_ledger_draws_from_the_backend():
    with Ledger(response_plan(total=1), noise=SecureNoise()) as ledger:
        answer = ledger.release(LAPLACE, 100.0, unit="ann", at="answer")
    assert abs(answer - 2.0) < 40 * LAPLACE.scale
    assert not ledger.seeded
    with pytest.raises(InputError, match="rng and noise are both given"):
        Ledger(response_plan(), noise=SecureNoise(), rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("mechanism", "law"),
    [
        (Laplace(2.0), ("laplace", (0, 2.0))),
        (Laplace(0.3), ("laplace", (0, 0.3))),
        (Gaussian(3.7306), ("norm", (0, 3.7306))),
    ],
)
def test_continuous_laws_are_kept(mechanism, law):
    from scipy import stats

    draws = SecureNoise().release_many(declared(mechanism), 7.0, RUNS) - 7.0
    name, parameters = law
    assert kolmogorov(draws, getattr(stats, name)(*parameters).cdf) > FALSE_ALARM


@pytest.mark.parametrize("mechanism", [DiscreteLaplace(2.5), DiscreteGaussian(3.0)])
def test_integer_laws_are_the_declared_ones(mechanism):
    from scipy.stats import chisquare

    draws = SecureNoise().release_many(declared(mechanism), 4, RUNS)
    assert draws.dtype == np.int64
    outcomes = np.arange(-1, 10)
    masses = np.exp(mechanism.log_density(outcomes, 4))
    seen = np.array([(draws == k).sum() for k in outcomes])
    expected = np.append(masses, 1 - masses.sum()) * RUNS
    assert chisquare(np.append(seen, RUNS - seen.sum()), expected).pvalue > FALSE_ALARM


def test_randomised_response_tells_the_truth_as_often_as_declared():
    from scipy.stats import binomtest

    mechanism = RandomizedResponse(p=0.3, k=4)
    answers = SecureNoise().release_many(declared(mechanism), 2, RUNS)
    truth = binomtest(int((answers == 2).sum()), RUNS, 1 - 0.3 + 0.3 / 4)
    assert truth.pvalue > FALSE_ALARM
    assert set(np.unique(answers)) == {0, 1, 2, 3}


def test_releases_lie_on_the_grid_and_keep_their_shape():
    noise = SecureNoise()
    mechanism = Laplace(1.0)
    step = noise.step(mechanism.scale)
    assert step == 2.0**-40
    released = noise.release_many(declared(mechanism), [[0.1, 0.2], [0.3, math.pi]], 50)
    assert released.shape == (50, 2, 2)
    assert (released / step == np.rint(released / step)).all()
    assert isinstance(noise.release(entry(mechanism), 1), float)


def test_values_far_beyond_the_noise_are_not_cut():
    released = SecureNoise().release_many(declared(Laplace(1.0)), 1e12, 20)
    assert (np.abs(released - 1e12) < 50).all()
    assert SecureNoise().release(entry(Laplace(1e-3)), 1e300) == 1e300  # as are its neighbours


LARGEST = sys.float_info.max
FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@given(
    value=FLOATS,
    scale=st.floats(1e-290, sys.float_info.max),
    ratio=st.floats(1e-4, 10.0),
    kind=st.sampled_from([Laplace, Gaussian]),
)
@example(value=-sys.float_info.max, scale=sys.float_info.max, ratio=1e-4, kind=Laplace)
@example(value=2.0**62, scale=2.0**40, ratio=1.0, kind=Laplace)
@example(value=-(2.0**64), scale=1.0, ratio=1.0, kind=Gaussian)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_continuous_releases_stay_by_their_values(value, scale, ratio, kind):
    """Within 80 scales, but for a probability of e^-40, at any size of value, noise and shift."""
    declaration = declared(kind(scale), min(scale * ratio, LARGEST))
    (released,) = SecureNoise().release_many(declaration, value, 1)
    ends = [Fraction(value) + sign * 80 * Fraction(scale) for sign in (-1, 1)]
    low, high = (min(max(end, -Fraction(LARGEST)), Fraction(LARGEST)) for end in ends)
    assert float(low) <= released <= float(high)


@given(
    value=st.integers(-(2**53), 2**53),
    exponent=st.floats(-300, 15),
    kind=st.sampled_from([DiscreteLaplace, DiscreteGaussian]),
)
@example(value=2**53, exponent=15.0, kind=DiscreteLaplace)
@example(value=-(2**53), exponent=15.0, kind=DiscreteLaplace)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_whole_releases_stay_by_their_values(value, exponent, kind):
    mechanism = kind(10.0 ** min(exponent, 9.0 if kind is DiscreteGaussian else 15.0))
    (released,) = SecureNoise().release_many(declared(mechanism), value, 1)
    assert released.dtype == np.int64
    assert abs(int(released) - value) <= 80 * mechanism.noise_scale


def test_what_integers_cannot_hold_is_refused_where_value_and_noise_meet():
    noise, values = SecureNoise(), np.zeros(2, dtype=np.int64)
    for draw in (noise.laplace, noise.normal):
        with pytest.raises(UnsupportedError, match=r"scale is 1e\+22; exact noise takes at most 2"):
            draw(1e22, values)
    assert set(map(type, noise.laplace(2.0**52, values).tolist())) == {int}


@pytest.mark.parametrize(
    ("mechanism", "sensitivity", "value", "sentence"),
    [
        (Laplace(1.0), 1e-19, 0.0, "sensitivity is 1e-19.*at least 2.7"),
        (LaplaceVector((1.0,), (1e-19,)), 1.0, [0.0], "sensitivity is 1e-19.*at least 2.7"),
        (Laplace(1.0), 1e-9, np.zeros(1000), "sensitivity is 1e-09.*at least 2.7"),
        (Gaussian(1.0), 1.0, np.zeros(20_000), "value has 20000 entries; .* at most 16384"),
        (SparseVector(1.0, 0.0, threshold_share=1e-9), 1.0, [0.0], "scale is .*takes at most"),
    ],
)
def test_what_no_grid_holds_is_refused_before_a_charge(
    mechanism, sensitivity, value, sentence, tmp_path
):
    use = replace(declared(mechanism, sensitivity), total=2)
    path = tmp_path / "journal"
    ledger = Ledger(Plan.of(use), noise=SecureNoise(), journal=path)
    before = path.read_bytes()
    with pytest.raises(UnsupportedError, match=sentence):
        ledger.release(mechanism, value)
    with pytest.raises(UnsupportedError, match=sentence):
        ledger.release_each(mechanism, [value, value], units=["ann", "bob"])
    assert len(ledger) == 0
    assert path.read_bytes() == before


@pytest.mark.parametrize("place", [0.0, 2.0**70, -1e18, 1e300, -1e308])
def test_a_threshold_is_compared_exactly_wherever_it_is(place):
    low = min(place - 1e4, math.nextafter(place, -math.inf))
    high = max(place + 1e4, math.nextafter(place, math.inf))
    use = declared(SparseVector(1.0, place, cutoff=5))
    released = SecureNoise().release_many(use, [low, high, low], 20)
    assert (released == [0.0, 1.0, 0.0]).all()


def test_gaussian_curve_is_at_most_the_declared_one():
    """On a coarse grid, where the masses of the discrete law can still be added up."""
    mechanism, step = Gaussian(2.0), 2.0**-9
    scale = normal_scale(mechanism, 1.0, 1, step)
    shift = math.floor(1.0 / step + 1)
    epsilons = np.linspace(0, 3, 60)
    spent = DiscreteGaussian(scale).pair(shift).delta(epsilons)
    assert (spent <= mechanism.pair(1.0).delta(epsilons) * (1 + 1e-9)).all()
    assert shift / scale <= 1.0 / mechanism.sigma


def test_the_samplers_own_map_agrees():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    mechanism, step = Laplace(2.0), 2.0**-39
    scale = laplace_scale(mechanism, 1.0, 1, step)
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    measurement = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
    assert measurement.map(int(1.0 / step) + 1) <= 0.5


def test_what_cannot_be_drawn_is_refused_at_the_first_draw():
    stream = ContinualGaussian(sigma=1.0, factorization=BinaryTree(4), participations=1)
    ledger = Ledger(Plan.of(declared(stream)))
    with pytest.raises(UnsupportedError, match="continual-gaussian at 'here' has no exact sampler"):
        ledger.release(stream, [0.0, 1.0])
    assert len(ledger) == 0
    wide = Ledger(Plan.of(declared(Gaussian(1.0), 20.0)), noise=SecureNoise())
    with pytest.raises(UnsupportedError, match="needs a ratio from"):
        wide.release(Gaussian(1.0), 0.0)
    assert len(wide) == 0
    with pytest.raises(UnsupportedError, match="at most 16384"):
        SecureNoise().release(entry(Gaussian(1.0)), np.zeros(20_000))


def test_a_batch_is_drawn_at_the_samplers_speed():
    start = time.perf_counter()
    SecureNoise().release_many(declared(Laplace(1.0)), 0.0, 50_000)
    assert time.perf_counter() - start < 10


def test_a_quantile_is_chosen_exactly():
    choice = ExponentialMechanism(50.0, 1.0)
    invocation = replace(declared(choice), contribution=Contribution(1.0, rows=1))
    with Ledger(Plan.of(invocation)) as ledger:
        chosen = ledger.quantile(np.arange(1000.0), 0.5, [0.0, 250.0, 500.0, 750.0], at="here")
    assert chosen == 500.0
    assert next(iter(ledger)).sampler.endswith("exact")


@pytest.mark.parametrize(
    ("mechanism", "values"),
    [
        (Laplace(2.0), np.zeros(4000)),
        (Gaussian(2.0), np.zeros((400, 10))),
        (DiscreteLaplace(2.0), np.zeros(4000)),
        (RandomizedResponse(0.5, 3), np.zeros(4000)),
        (ExponentialMechanism(1.0), np.zeros((4000, 2))),
    ],
    ids=lambda each: getattr(each, "kind", ""),
)
def test_many_releases_at_once_have_the_law_of_one_by_one(mechanism, values):
    invocation = replace(declared(mechanism), total=len(values))
    with Ledger(Plan.of(invocation)) as ledger:
        names = [f"user {number}" for number in range(len(values))]
        released = np.array(ledger.release_each(mechanism, values, units=names))
    rng = np.random.default_rng(1)
    tails = [
        mechanism.tails(one, mechanism.prepare(value), rng)
        for one, value in zip(released, values, strict=True)
    ]
    assert p_value(Tails.joined(tails)) > FALSE_ALARM
    assert len({one.tobytes() for one in released}) > 1


def test_many_releases_at_once_are_drawn_together():
    def seconds(together):
        names, noise = [f"user {number}" for number in range(300)], Laplace(1.0)
        ledger = Ledger(Plan.of(replace(declared(noise), total=300)), noise=SecureNoise())
        start = time.perf_counter()
        if together:
            ledger.release_each(noise, [0.0] * 300, units=names)
        else:
            for name in names:
                ledger.release(noise, 0.0, unit=name)
        return time.perf_counter() - start

    seconds(True)
    assert 2 * seconds(True) < seconds(False)


@pytest.mark.parametrize("sampling", [PoissonSampling(0.25), FixedSizeSampling(5, 20)])
def test_samples_have_the_declared_law(sampling):
    """2000 events of 1/4 for each of 20 units, within 6 standard deviations (below 1e-7)."""
    use = gaussian_invocation(relation=ReplaceOne(), sampling=sampling)
    samples = [SecureNoise().sample(use, [""] * 20) for _ in range(2_000)]
    assert all(sample == sorted(set(sample)) for sample in samples)
    counts = np.bincount(np.concatenate(samples).astype(int), minlength=20)
    assert abs(counts - 500).max() < 6 * math.sqrt(2_000 * 0.25 * 0.75)
    if isinstance(sampling, FixedSizeSampling):
        assert {len(sample) for sample in samples} == {5}


def test_truncated_samples_are_poisson_samples_cut_at_random():
    """2000 samples of rate 1/2 cut at 3 of 4 units, within 6 standard deviations (below 1e-7)."""
    use = gaussian_invocation(sampling=TruncatedPoissonSampling(0.5, 3, 4))
    noise = SecureNoise()
    samples = [noise.sample(use, list("abcd")) for _ in range(2_000)]
    assert all(sample == sorted(set(sample)) for sample in samples)
    sizes = np.bincount([len(sample) for sample in samples], minlength=5)
    for size, expected in ((0, 1 / 16), (1, 1 / 4), (2, 3 / 8), (3, 5 / 16)):
        assert abs(sizes[size] - 2_000 * expected) < 6 * np.sqrt(2_000 * expected)
    assert sizes[4] == 0
    full = np.concatenate([sample for sample in samples if len(sample) == 3])
    assert abs(np.bincount(full) - full.size / 4).max() < 6 * np.sqrt(full.size / 4)


@pytest.mark.parametrize("mechanism", [Laplace(5e-324), Gaussian(5e-324)])
def test_a_scale_below_every_grid_is_refused_before_a_charge(mechanism):
    one = gaussian_invocation(mechanism=mechanism)
    with pytest.raises(UnsupportedError, match=r"scale is 4.9\d*e-324; no grid is that fine"):
        SecureNoise().require(Plan.of(one))


@pytest.mark.parametrize(
    ("rate", "words", "happened"),
    [
        (0.5, [2**63 - 1, 2**63, 2**63 + 1, 0, 2**64 - 1], [1, 0, 0, 1, 0]),
        (1.0, [0, 2**64 - 1], [1, 1]),
        (2.0**-64, [0, 1], [1, 0]),
        (1 - 2.0**-53, [2**64 - 2**11 - 1, 2**64 - 2**11], [1, 0]),
    ],
)
def test_an_event_is_decided_by_64_bits(rate, words, happened, monkeypatch):
    made = np.array(words, dtype=np.uint64).tobytes()
    monkeypatch.setattr("dpaudit.ledger.exact_noise.secrets.token_bytes", lambda size: made)
    assert SecureNoise().events(rate, (len(words),)).tolist() == [bool(each) for each in happened]


def test_at_the_edge_the_rest_of_the_rate_decides(monkeypatch):
    """P = 2^-65: of words of 64 zeros half."""
    monkeypatch.setattr("dpaudit.ledger.exact_noise.secrets.token_bytes", bytes)
    drawn = SecureNoise().events(2.0**-65, (4000,))
    assert abs(drawn.mean() - 0.5) < 5 / 4000**0.5  # misses once in 10^6 at most
