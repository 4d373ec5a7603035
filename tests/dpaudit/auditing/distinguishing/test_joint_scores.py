"""A score of entries that tell only together."""

import numpy as np
import pytest

from dpaudit import AuditPair
from dpaudit.auditing import audit_release
from dpaudit.auditing.distinguishing.scores import (
    NormalScore,
    PairScore,
    ParityScore,
    together,
)

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
