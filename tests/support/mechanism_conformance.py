"""The suite that every mechanism inherits: a subclass names the mechanism and its laws."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.errors import InputError
from dpaudit.mechanisms import Mechanism

RUNS = 40_000
# Two-sided normal bound: a false alarm of 1e-7 a comparison.
Z = stats.norm.isf(0.5e-7)


class MechanismConformance:
    """Override the class attributes and two methods."""

    mechanism: Mechanism
    sensitivity: float = 1.0
    value: float | tuple[float, ...] = 0.0
    neighbour: float | tuple[float, ...] = 1.0
    bad_parameters: tuple[dict[str, object], ...] = ()
    bad_values: tuple[object, ...] = (math.nan, math.inf, -math.inf, "a", None, [1.0, math.nan])

    def mean(self) -> float:
        raise NotImplementedError

    def variance(self) -> float:
        raise NotImplementedError

    def exact_delta(self, epsilon: float) -> float:
        """Hockey-stick divergence by brute force, from log_density alone."""
        raise NotImplementedError

    # -- parameters ------------------------------------------------------------------------------

    def test_bad_parameters_are_refused_in_one_sentence(self):
        for parameters in self.bad_parameters:
            with pytest.raises(InputError) as caught:
                type(self.mechanism)(**{**_fields(self.mechanism), **parameters})
            message = str(caught.value)
            assert message.endswith(".")
            assert "\n" not in message
            assert any(name in message for name in parameters)

    def test_serialises_and_comes_back_equal(self):
        record = json.loads(json.dumps(self.mechanism.to_dict()))
        again = Mechanism.parse(record)
        assert again == self.mechanism
        assert hash(again) == hash(self.mechanism)

    def test_unknown_and_missing_fields_are_refused(self):
        record = self.mechanism.to_dict()
        with pytest.raises(InputError, match="unknown key 'colour'"):
            Mechanism.parse(record | {"colour": 1})

    # -- privacy ---------------------------------------------------------------------------------

    def test_the_same_data_cost_nothing(self):
        pair = self.mechanism.pair(0.0)
        assert pair.delta(0.0) == 0
        assert pair.pure_epsilon == 0
        assert np.all(pair.renyi([1.5, 2.0, 64.0]) == 0)

    def test_profile_is_monotone(self):
        pair = self.mechanism.pair(self.sensitivity)
        epsilons = np.linspace(-3, 6, 200)
        deltas = pair.delta(epsilons)
        assert np.all(np.diff(deltas) <= 1e-15)
        assert np.all(np.diff(pair.renyi(np.linspace(1.05, 40, 100))) >= -1e-12)
        assert np.all((deltas >= 0) & (deltas <= 1))

    def test_tails_are_complementary_and_ordered(self):
        pair = self.mechanism.pair(self.sensitivity)
        losses = np.linspace(-4, 4, 161)
        above, below = pair.above(losses), pair.below(losses)
        for upper, lower in zip(above, below, strict=True):
            np.testing.assert_allclose(upper + lower, 1.0, atol=1e-12)
        assert np.all(above[0] >= above[1] - 1e-15)

    def test_pair_is_symmetric(self):
        pair = self.mechanism.pair(self.sensitivity)
        losses = np.linspace(-3.01, 3.01, 100)
        # P[L > l] = Q[L < −l]; the points avoid atoms, where < and ≤ differ.
        np.testing.assert_allclose(pair.above(losses)[0], pair.below(-losses)[1], atol=1e-9)

    def test_profile_equals_brute_force(self):
        pair = self.mechanism.pair(self.sensitivity)
        for epsilon in (0.0, 0.25, 0.7, 1.3):
            assert float(pair.delta(epsilon)) == pytest.approx(self.exact_delta(epsilon), abs=1e-7)

    def test_bad_sensitivities_are_refused(self):
        for sensitivity in (-1.0, math.nan, math.inf, "1", True):
            with pytest.raises(InputError, match="sensitivity"):
                self.mechanism.pair(sensitivity)

    # -- release ---------------------------------------------------------------------------------

    def test_moments(self):
        outputs = self.mechanism.release_many(self.value, RUNS, np.random.default_rng(7))
        outputs = outputs.reshape(RUNS, -1)[:, 0].astype(float)
        error = math.sqrt(self.variance() / RUNS)
        assert abs(outputs.mean() - self.mean()) < Z * error
        spread = (outputs - self.mean()) ** 2
        assert abs(spread.mean() - self.variance()) < Z * spread.std() / math.sqrt(RUNS)

    def test_release_keeps_shape_and_is_reproducible(self):
        rng = np.random.default_rng
        first = self.mechanism.release(self.value, rng(3))
        second = self.mechanism.release(self.value, rng(3))
        assert np.array_equal(first, second)
        assert np.shape(first) == np.shape(self.value)
        many = self.mechanism.release_many(self.value, 5, rng(3))
        assert many.shape == (5, *np.shape(self.value))
        assert self.mechanism.release_many(self.value, 0, rng(3)).shape[0] == 0

    def test_bad_values_are_refused_before_noise_is_drawn(self):
        for value in self.bad_values:
            rng = np.random.default_rng(5)
            before = rng.bit_generator.state
            with pytest.raises(InputError):
                self.mechanism.release(value, rng)
            assert rng.bit_generator.state == before

    def test_log_density_gives_the_loss_its_law(self):
        """Under P the loss exceeds its own pair's quantiles as often as the pair says."""
        rng = np.random.default_rng(11)
        outputs = self.mechanism.release_many(self.neighbour, RUNS, rng)
        loss = self.mechanism.log_density(outputs, self.neighbour) - self.mechanism.log_density(
            outputs, self.value
        )
        pair = self.mechanism.pair(self.sensitivity)
        for threshold in (-0.31, 0.0501, 0.29):
            expected = float(pair.above(threshold)[0])
            error = math.sqrt(max(expected * (1 - expected), 1e-6) / RUNS)
            assert abs(np.mean(loss > threshold) - expected) < Z * error + 1e-9


def _fields(mechanism: Mechanism) -> dict[str, object]:
    record = mechanism.to_dict()
    record.pop("kind")
    return record


def grid_delta(log_p, log_q, epsilon: float, weight: float = 1.0) -> float:
    """∑ max(p − e^ε q, 0) over a grid of outputs."""
    return float(np.maximum(np.exp(log_p) - np.exp(epsilon + log_q), 0).sum() * weight)
