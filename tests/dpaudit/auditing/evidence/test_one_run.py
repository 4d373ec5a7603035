from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.auditing.evidence.one_run import one_run_p_value
from dpaudit.base.errors import InputError


def test_pure_case_is_a_binomial_tail():
    for epsilon in (0.0, 0.5, 3.0):
        accuracy = math.exp(epsilon) / (1 + math.exp(epsilon))
        expected = sum(
            math.comb(30, k) * accuracy**k * (1 - accuracy) ** (30 - k) for k in range(22, 31)
        )
        assert one_run_p_value(50, 30, 22, epsilon, 0.0) == pytest.approx(expected, rel=1e-9)


def test_delta_term_matches_the_theorem_spelt_out():
    m, r, v, epsilon, delta = 40, 25, 20, 0.7, 1e-3
    law = binom(r, 1 / (1 + math.exp(-epsilon)))
    alpha = max((law.cdf(v - 1) - law.cdf(v - i - 1)) / i for i in range(1, v + 1))
    expected = law.sf(v - 1) + 2 * m * delta * alpha
    assert one_run_p_value(m, r, v, epsilon, delta) == pytest.approx(expected, rel=1e-9)


def test_randomised_response_that_fails_openly_with_probability_delta():
    # All canaries are revealed with probability delta; otherwise randomised response.
    epsilon, delta, r = 0.5, 0.01, 40
    accuracy = 1 / (1 + math.exp(-epsilon))
    values = np.array([one_run_p_value(r, r, v, epsilon, delta) for v in range(r + 1)])
    law = (1 - delta) * binom.pmf(np.arange(r + 1), r, accuracy)
    law[r] += delta
    for error in (0.01, 0.05, 0.2):
        assert law[values <= error].sum() <= error


def test_bad_input_is_named():
    with pytest.raises(InputError, match="guesses is 11"):
        one_run_p_value(10, 11, 5, 1.0, 0.0)
    with pytest.raises(InputError, match="correct is 6"):
        one_run_p_value(10, 5, 6, 1.0, 0.0)
