"""The paper's lemmas on noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from private_bo.joint.statistics import (
    FREE_WEIGHT,
    CentredStatistics,
    PaperStatistics,
    lemma_2_sigma,
    lemma_3_shift,
    lemma_6_shift,
    noise_norm,
)


def test_shift_bounds_hold_for_the_noise() -> None:
    rng, m = np.random.default_rng(0), 20
    norms = []
    for _ in range(200):
        V = rng.normal(size=(m, m))
        norms.append(np.linalg.norm((V + V.T) / math.sqrt(2), 2))
    bound = noise_norm(1.0, steps=1024, size=m, confidence=0.1)
    assert max(norms) < bound < lemma_3_shift(1.0, steps=1, size=m, confidence=0.1 / 1024)


def test_both_readings_of_lemma_2() -> None:
    n, beta, alpha = 11, 0.1, 10.0
    printed = 16 * n * 2 * math.log(10 / beta) ** 2 / alpha**2
    facts = {"steps": 1024, "bound": 1.0}
    assert math.isclose(lemma_2_sigma(alpha, beta, **facts, printed=True), printed)
    assert math.isclose(lemma_2_sigma(alpha, beta, **facts), math.sqrt(printed))
    logarithm = lemma_2_sigma(alpha, beta, **facts, variance=0.25)
    assert round(logarithm, 1) == 16.9


def test_the_shift_of_lemma_6_bounds_the_sum_of_all_clients_noise() -> None:
    rng, m, steps = np.random.default_rng(0), 20, 64
    norms = []
    for _ in range(50):
        lower = np.tril(rng.normal(size=(steps, m, m)).sum(axis=0))
        norms.append(np.linalg.norm(lower + np.tril(lower, -1).T, 2))
    assert max(norms) < lemma_6_shift(1.0, steps=steps, size=m, confidence=0.1)


def unit(rng: np.random.Generator, size: int) -> np.ndarray:
    phi = rng.normal(size=size)
    return phi / np.linalg.norm(phi)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    weight=st.floats(0.0, 2.0),
    centred=st.booleans(),
    angle=st.floats(0, math.pi),
    lengths=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    rewards=st.tuples(st.floats(-1, 3), st.floats(-1, 3)),
)
def test_no_replacement_moves_the_statistics_farther(weight, centred, angle, lengths, rewards):
    statistics = CentredStatistics(2, (-1.0, 3.0), matrix_weight=weight, centred=centred)
    x = lengths[0] * np.array([1.0, 0.0])
    y = lengths[1] * np.array([math.cos(angle), math.sin(angle)])
    moved = statistics.encode(x, rewards[0]) - statistics.encode(y, rewards[1])
    assert np.linalg.norm(moved) <= statistics.sensitivity + 1e-12


@pytest.mark.parametrize("weight", [0.0, 0.2, FREE_WEIGHT, 0.6, 1.0])
@pytest.mark.parametrize("centred", [True, False])
def test_sensitivities_are_reached(weight: float, centred: bool) -> None:
    statistics = CentredStatistics(2, matrix_weight=weight, centred=centred)
    widest = 0.0
    for angle in np.linspace(0, math.pi, 2001):
        y = np.array([math.cos(angle), math.sin(angle)])
        for reward in (0.0, 1.0):
            moved = statistics.encode(np.array([1.0, 0.0]), 1.0) - statistics.encode(y, reward)
            widest = max(widest, float(np.linalg.norm(moved)))
    assert widest == pytest.approx(statistics.sensitivity, rel=1e-5)


def test_the_matrix_is_free_up_to_its_weight() -> None:
    assert CentredStatistics(3, matrix_weight=0.0).sensitivity == pytest.approx(1.0, rel=1e-14)
    assert CentredStatistics(3).sensitivity == pytest.approx(1.0, rel=1e-14)
    assert CentredStatistics(3, matrix_weight=1.02 * FREE_WEIGHT).sensitivity > 1 + 1e-5


def test_a_nonnegative_kernel_saves_a_quarter_without_centring() -> None:
    def squared(floor: float) -> float:
        plain = CentredStatistics(3, matrix_weight=2**-0.5, centred=False, least_product=floor)
        return plain.sensitivity**2

    assert squared(0.0) == pytest.approx(3.0)
    assert squared(-1.0) == pytest.approx(4.0)


@pytest.mark.parametrize("weight", [0.0, 0.3])
def test_encoded_statistics_are_read_back(weight: float) -> None:
    rng = np.random.default_rng(0)
    statistics = CentredStatistics(4, matrix_weight=weight)
    phi = unit(rng, 4)
    sums = statistics.decode(statistics.encode(phi, 1.0), 1, 2.0)
    np.testing.assert_allclose(sums.vector, 0.5 * phi)
    assert sums.vector_noise == 2.0
    if weight:
        np.testing.assert_allclose(sums.matrix, np.outer(phi, phi))
        assert sums.matrix_noise == pytest.approx(2.0 / weight / math.sqrt(2))


def test_paper_statistics_move_no_farther_than_declared() -> None:
    rng, statistics = np.random.default_rng(0), PaperStatistics(3, (-2.0, 2.0))
    for _ in range(200):
        one = statistics.encode(unit(rng, 3), rng.uniform(-2, 2))
        two = statistics.encode(unit(rng, 3), rng.uniform(-2, 2))
        assert np.linalg.norm(one - two) <= statistics.sensitivity
