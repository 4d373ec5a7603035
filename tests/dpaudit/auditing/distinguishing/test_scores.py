"""Scores against closed forms of the likelihood ratio.

Columns that differ between two samples are found among many that do not.
A score of entries that tell only together.
Scores of one's own: a function of an output to a number.
"""

import math

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
from dpaudit.auditing.distinguishing.scores import (
    ColumnScore,
    NormalScore,
    PairScore,
    ParityScore,
    differences,
    scale,
    scaled,
    together,
)
from dpaudit.auditing.evidence.events import Event


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


def sides(change, size=400, width=300):
    rng = np.random.default_rng(5)
    x, x_prime = rng.standard_cauchy(size=(2, size, width))
    change(x, rng)
    return x, x_prime


def spread(x, rng):
    x[:, 17] *= 0.5


def zeros(x, rng):
    x[rng.random(len(x)) < 0.1, 17] = 0.0


def missing(x, rng):
    x[rng.random(len(x)) < 0.1, 17] = np.nan


def bound(x, rng):
    x[:, 17] = np.minimum(x[:, 17], 4.0)


@pytest.mark.parametrize(
    "change", [lambda x, rng: np.add(x[:, 17], 1, out=x[:, 17]), spread, zeros, missing, bound]
)
def test_the_one_column_that_differs_is_the_clearest(change):
    told = differences(*sides(change))
    assert told.argmax() == 17
    # Of 300 equal columns with 9 statistics each none is beyond 5.2 but with a chance of 6e-4.
    assert np.delete(told, 17).max() < 5.2 < told[17]


def test_slabs_change_nothing(monkeypatch):
    x, x_prime = sides(zeros)
    whole = differences(x, x_prime)
    monkeypatch.setattr("dpaudit.auditing.distinguishing.scores.SLAB", 7 * 800)
    assert (differences(x, x_prime) == whole).all()


def test_odd_columns_are_no_trouble():
    odd = np.array([[np.nan, np.inf, 1.0, 1e308], [np.nan, -np.inf, 1.0, -1e308]])
    assert np.isfinite(differences(odd, odd)).all()
    assert np.isfinite(scaled(odd, *scale(odd))).all()
    assert differences(np.empty((2, 0)), np.empty((2, 0))).shape == (0,)


def test_a_flag_is_told_in_words():
    flag, number = ColumnScore(1, "the key is there", flag=True), ColumnScore(0, "output[0]")
    rows = np.array([[3.5, 0.0], [4.5, 1.0]])
    assert (flag(rows) == [0, 1]).all()
    assert (number(rows) == [3.5, 4.5]).all()
    assert flag.in_words(Event(lower=1.0)) == "the key is there"
    assert flag.in_words(Event(upper=0.0)) == "the key is not there"
    assert flag.in_words(Event()) is number.in_words(Event(lower=1.0)) is None


RNG = np.random.default_rng


def beside_its_noise(data, size, rng):
    noise = rng.normal(scale=1e3, size=size)
    return np.stack([data + noise, noise], axis=1)


def exact_sum(data, size, rng):
    noisy = rng.laplace(size=(size, 6))
    if data:
        noisy[:, 5] = noisy[:, 0] + noisy[:, 2]
    return noisy


@pytest.mark.parametrize("release", [beside_its_noise, exact_sum])
def test_noise_that_can_be_taken_away_again_is_found(release):
    record = audit_release(release, AuditPair(0.0, 1.0), epsilon=1.0, runs=2000, seed=1)
    assert record.refuted
    assert record.epsilon_lower > 5
    assert "normal laws" in record.method


def test_it_is_the_ratio_of_two_normal_laws():
    x, other = RNG(0).normal(size=(40_000, 2)), RNG(1).normal([1, 0], [1, 2], size=(40_000, 2))
    score = NormalScore.fit(x, other)
    points = np.array([[0.0, 0.0], [1.0, 2.0]])
    expected = (points[:, 0] - 1) ** 2 + points[:, 1] ** 2 / 4 - np.square(points).sum(axis=1)
    assert score(points) == pytest.approx(expected, abs=0.15)


@pytest.mark.parametrize(
    "outputs", [RNG(0).normal(size=(50, 1)), RNG(0).normal(size=(8, 3)), np.full((50, 2), np.inf)]
)
def test_there_is_none_of_numbers_of_few_runs_and_of_infinities(outputs):
    assert NormalScore.fit(outputs, outputs) is None


@pytest.mark.parametrize("scale", [1e-300, 5e-324, 1.0, 1e149])
def test_constant_and_extreme_entries_give_numbers(scale):
    outputs = scale * np.c_[np.ones(50), RNG(0).integers(0, 2, 50), np.zeros(50)]
    assert np.isfinite(NormalScore.fit(outputs, outputs)(outputs)).all()


def test_many_entries_are_reduced_to_those_that_differ():
    x, other = RNG(0).normal(size=(400, 300)), RNG(1).normal(size=(400, 300))
    other[:, 7] += 3
    score = NormalScore.fit(x, other)
    assert 7 in score.places
    assert score(x).mean() > score(other).mean()


def exclusive_or(entries, of, flip=0.0):
    def release(data, size, rng):
        noisy = rng.normal(size=(size, entries))
        odd = (noisy[:, :of] > 0).sum(axis=1) % 2 == 1
        wrong = (odd != bool(data)) & (rng.random(size) >= flip)
        noisy[wrong, 0] *= -1
        return noisy

    return release


@pytest.mark.parametrize(
    ("entries", "of", "flip", "words"),
    [
        (100, 2, 0.2, "entries 0 and 1 together"),
        (100, 20, 0.0, "parity of the signs of 20 entries"),
        (20, 3, 0.0, "parity of the signs of 3 entries"),
    ],
)
def test_an_exclusive_or_is_found(entries, of, flip, words):
    release = exclusive_or(entries, of, flip)
    record = audit_release(release, AuditPair(0, 1), epsilon=1.0, runs=6000, seed=1)
    assert record.refuted
    assert words in record.event


def test_what_is_independent_gives_neither():
    x, other = RNG(0).normal(size=(400, 30)), RNG(1).normal(size=(400, 30))
    assert PairScore.fit(x, other) is None
    assert ParityScore.fit(x, other) is None
    assert [type(score) for score in together(x, other)] == [NormalScore]


def uniform_pair(data, size, rng):
    """Two fields of eight values, each uniform; the second follows from the first, on one side."""
    first, second = rng.integers(8, size=(2, size))
    follows = (3 * first + 1) % 8
    second = np.where((rng.random(size) < 0.5) & bool(data), follows, second)
    return np.stack([rng.laplace(size=size), first, rng.normal(size=size), second], axis=1)


def rarely_equal(data, size, rng):
    """Two numbers of wide noise, which one side alone makes equal now and then."""
    noisy = rng.standard_cauchy(size=(size, 5))
    equal = (rng.random(size) < 0.1) & bool(data)
    noisy[:, 3] = np.where(equal, noisy[:, 1], noisy[:, 3])
    return noisy


def test_one_field_given_another_is_found_where_none_tells_alone():
    record = audit_release(uniform_pair, AuditPair(1, 0), epsilon=0.5, runs=8000, seed=2)
    assert record.refuted
    assert "entries 1 and 3 together" in record.event


def test_a_difference_of_fields_is_found():
    record = audit_release(rarely_equal, AuditPair(1, 0), epsilon=1.0, runs=8000, seed=2)
    assert record.refuted
    assert "entry 1 less entry 3" in record.event


def test_pairs_are_given_their_cells_in_many_chunks_alike():
    x, other = (uniform_pair(data, 3000, RNG(data)) for data in (1, 0))
    score = PairScore.fit(x, other)
    assert score.places == (1, 3)
    assert (score(x) == np.concatenate([score(part) for part in np.split(x, 6)])).all()
    assert score(x).mean() > score(other).mean() + 0.3


def test_a_parity_needs_more_runs_than_entries():
    x, other = (exclusive_or(30, 4)(data, 70, RNG(0)) for data in (0, 1))
    assert ParityScore.fit(x, other) is None
    x, other = (exclusive_or(30, 4)(data, 71, RNG(0)) for data in (0, 1))
    score = ParityScore.fit(x, other)
    assert score.places == (0, 1, 2, 3)
    assert (score(x) == 0).all()
    assert (score(other) == 1).all()


PAIR = AuditPair([0], [1])
P = math.e**2 / (math.e**2 + 1)


def masked(data, rng):
    """The answer beside a key that it is enciphered with: neither says anything alone."""
    key = int(rng.integers(2**40))
    return {"key": key, "text": f"c{key % 97 % 2 ^ (data[0] ^ int(rng.random() > P))}"}


def opened(output):
    return output["key"] % 97 % 2 ^ int(output["text"][1])


def audit(function, score, **settings):
    settings = {"epsilon": 1.0, "runs": 4000, "seed": 3, **settings}
    return audit_release(BlackBox(function), PAIR, score=score, **settings)


def test_a_score_finds_what_is_not_found_without():
    assert not audit(masked, None).refuted
    found = audit(masked, opened)
    assert found.refuted
    assert 1.7 < found.epsilon_lower < 2
    assert "opened(output)" in found.event
    assert found.method == "score that was given"


def test_a_right_claim_is_not_refuted():
    assert not audit(masked, opened, epsilon=2.1).refuted


def test_a_useless_score_does_not_hide_what_others_show():
    def loud(data, rng):
        return {"sum": data[0] + rng.laplace(scale=0.4), "note": "x"}

    assert audit(loud, lambda output: 0.5).refuted


def test_exceptions_have_no_score():
    def sometimes(data, rng):
        if rng.random() < 0.2:
            raise ValueError("now and then")
        return masked(data, rng)

    assert audit(sometimes, opened).refuted


@pytest.mark.parametrize("score", [lambda output: output["nothing"], lambda output: "high"])
def test_a_score_that_fails_is_told_of(score):
    with pytest.raises(InputError, match=r"<lambda>\(output\) failed with .* must give a number"):
        audit(masked, score)


def test_batches_are_scored():
    def batch(data, size, rng):
        return data[0] + rng.laplace(scale=0.5, size=(size, 2))

    assert audit(batch, np.sum, runs=1000).refuted


def test_it_may_stop_early():
    assert audit(masked, opened, stop_early=True).runs < 4000
