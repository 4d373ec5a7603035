"""The suites that mechanisms inherit: a subclass names the mechanism and its laws.

``PrivacyConformance`` is for all of them, ``MechanismConformance`` for those that can be run.
"""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from dpaudit.auditing.noise.conformance import p_value
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import DominatingPair, GaussianPair, Mechanism, Tails

RUNS = 40_000
# Two-sided normal bound: a false alarm of 1e-7 a comparison.
Z = stats.norm.isf(0.5e-7)
FALSE_ALARM = 1e-6


@dataclass(frozen=True)
class BarePair(DominatingPair):
    """A normal pair that says nothing but its tails and its divergences."""

    known: GaussianPair

    def above(self, loss):
        return self.known.above(loss)

    def below(self, loss):
        return self.known.below(loss)

    def renyi(self, orders):
        return self.known.renyi(orders)

    @property
    def pure_epsilon(self):
        return math.inf


class PrivacyConformance:
    """Override the class attributes."""

    mechanism: Mechanism
    sensitivity: float = 1.0
    bad_parameters: tuple[dict[str, object], ...] = ()

    # -- parameters ------------------------------------------------------------------------------

    def test_bad_parameters_are_refused_in_one_sentence(self):
        for parameters in self.bad_parameters:
            with pytest.raises(InputError) as caught:
                type(self.mechanism)(**{**_fields(self.mechanism), **parameters})
            assert _is_a_sentence(caught.value)
            assert any(name in str(caught.value) for name in parameters)

    def test_serialises_and_comes_back_equal(self):
        record = json.loads(json.dumps(self.mechanism.to_dict()))
        again = Mechanism.parse(record)
        assert again == self.mechanism
        assert hash(again) == hash(self.mechanism)
        assert repr(again) == repr(self.mechanism)

    def test_unknown_fields_are_refused(self):
        record = self.mechanism.to_dict()
        with pytest.raises(InputError, match="unknown key 'colour'"):
            Mechanism.parse(record | {"colour": 1})

    # -- privacy ---------------------------------------------------------------------------------

    def test_the_same_data_cost_nothing(self):
        pair, failure = self.mechanism.pair_and_failure(0.0)
        assert failure == 0
        assert pair.pure_epsilon == 0
        assert np.all(pair.renyi([1.5, 2.0, 64.0]) == 0)
        if pair.has_law:
            assert pair.delta(0.0) == 0

    def test_profile_is_monotone(self):
        pair = self.mechanism.pair(self.sensitivity)
        divergences = pair.renyi(np.linspace(1.05, 40, 100))
        assert np.all(divergences[1:] >= divergences[:-1] - 1e-12)
        if pair.has_law:
            deltas = pair.delta(np.linspace(-3, 6, 200))
            assert np.all(np.diff(deltas) <= 1e-15)
            assert np.all((deltas >= 0) & (deltas <= 1))

    def test_tails_are_complementary_ordered_and_symmetric(self):
        pair = self.mechanism.pair(self.sensitivity)
        if not pair.has_law:
            pytest.skip("its loss has no known law")
        losses = np.linspace(-4.01, 4.01, 160)  # avoids atoms, where < and ≤ differ
        above, below = pair.above(losses), pair.below(losses)
        for upper, lower in zip(above, below, strict=True):
            np.testing.assert_allclose(upper + lower, 1.0, atol=1e-12)
        assert np.all(above[0] >= above[1] - 1e-15)
        np.testing.assert_allclose(above[0], pair.below(-losses)[1], atol=1e-9)

    def test_quantiles_leave_out_no_more_than_the_tail(self):
        pair = self.mechanism.pair(self.sensitivity)
        if not pair.has_law:
            pytest.skip("its loss has no known law")
        infinite = float(pair.above(math.inf)[0])
        for tail in (1e-3, 1e-9):
            top, bottom = pair.upper_quantile(tail), pair.lower_quantile(tail)
            assert pair.above(top)[0] - infinite <= 1.1 * tail
            assert pair.below(bottom - 1e-9)[0] <= 1.1 * tail

    def test_bad_sensitivities_are_refused(self):
        for sensitivity in (-1.0, math.nan, math.inf, "1", True):
            with pytest.raises(InputError, match="sensitivity"):
                self.mechanism.pair(sensitivity)

    def test_less_distance_is_a_strength_of_at_most_as_much(self):
        less = self.mechanism.strength(0.0)
        more = self.mechanism.strength(self.sensitivity)
        assert (less is None) == (more is None)
        if less is not None and less[0] == more[0]:
            assert less[1] <= more[1]


class MechanismConformance(PrivacyConformance):
    """Override the class attributes and three methods."""

    value: float | tuple[float, ...] = 0.0
    neighbour: float | tuple[float, ...] = 1.0
    bad_values: tuple[object, ...] = (math.nan, math.inf, -math.inf, "a", None, [1.0, math.nan])
    attained: bool = True
    """Whether ``value`` and ``neighbour`` cost all that the pair says, and not only at most."""
    released_shape: tuple[int, ...] | None = None
    """Of one release, where it is not that of the value."""
    unlike: Mechanism | None = None
    """A mechanism with another law, which tests of 1000 draws must tell from this one; None for a
    mechanism that declares no law."""

    def mean(self) -> float:
        raise NotImplementedError

    def variance(self) -> float:
        raise NotImplementedError

    def exact_delta(self, epsilon: float) -> float:
        """Hockey-stick divergence of the two values by brute force, such as from log_density."""
        raise NotImplementedError

    def test_profile_equals_brute_force(self):
        pair = self.mechanism.pair(self.sensitivity)
        for epsilon in (0.0, 0.25, 0.7, 1.3):
            proved, exact = float(pair.delta(epsilon)), self.exact_delta(epsilon)
            assert proved >= exact - 1e-7
            if self.attained:
                assert proved == pytest.approx(exact, abs=1e-7)

    def test_the_worst_values_are_values(self):
        for first, second, description in self.mechanism.worst_pairs():
            distance = self.mechanism.distance(*map(self.mechanism.prepare, (first, second)))
            assert 0 < distance <= self.sensitivity
            assert description

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
        shape = np.shape(self.value) if self.released_shape is None else self.released_shape
        first = self.mechanism.release(self.value, rng(3))
        second = self.mechanism.release(self.value, rng(3))
        assert np.array_equal(first, second)
        assert np.shape(first) == shape
        assert self.mechanism.release_many(self.value, 5, rng(3)).shape == (5, *shape)
        assert self.mechanism.release_many(self.value, 0, rng(3)).shape == (0, *shape)

    def test_bad_values_are_refused_before_noise_is_drawn(self):
        for value in self.bad_values:
            rng = np.random.default_rng(5)
            before = rng.bit_generator.state
            with pytest.raises(InputError):
                self.mechanism.release(value, rng)
            with pytest.raises(InputError):
                self.mechanism.checked(value)
            assert rng.bit_generator.state == before

    # -- law -------------------------------------------------------------------------------------

    def test_log_density_gives_the_loss_its_law(self):
        """Under P the loss exceeds its own pair's quantiles as often as the pair says."""
        rng = np.random.default_rng(11)
        outputs = self.mechanism.release_many(self.neighbour, RUNS, rng)
        loss = self.mechanism.log_density(outputs, self.neighbour) - self.mechanism.log_density(
            outputs, self.value
        )
        pair = self.mechanism.pair(self.sensitivity)
        assert loss.max() <= float(pair.pure_epsilon) * (1 + 1e-9) + 1e-9
        for threshold in (-0.31, 0.0501, 0.29) if self.attained else ():
            expected = float(pair.above(threshold)[0])
            error = math.sqrt(max(expected * (1 - expected), 1e-6) / RUNS)
            assert abs(np.mean(loss > threshold) - expected) < Z * error + 1e-9

    def test_its_noise_passes_the_test_of_its_own_law_and_other_noise_does_not(self):
        released = self.mechanism.release_many(self.value, 1000, np.random.default_rng(13))
        if self.unlike is None:
            with pytest.raises(UnsupportedError, match="declares no law") as caught:
                self.tails(released)
            assert _is_a_sentence(caught.value)
            return
        assert p_value(self.tails(released)) > FALSE_ALARM
        other = self.unlike.release_many(self.value, 1000, np.random.default_rng(13))
        assert p_value(self.tails(other)) < FALSE_ALARM

    def tails(self, released: np.ndarray) -> Tails:
        rng, prepared = np.random.default_rng(17), self.mechanism.prepare(self.value)
        return Tails.joined([self.mechanism.tails(one, prepared, rng) for one in released])

    def test_exact_releases_have_the_declared_law(self):
        """With exact samplers replaced by a generator: what the mechanism makes of their draws."""
        source = PlainSource(np.random.default_rng(19))
        if not self.mechanism.has_exact_sampler():
            with pytest.raises(UnsupportedError, match="has no exact sampler") as caught:
                self.mechanism.release_exactly(self.value, self.sensitivity, 1, source)
            assert _is_a_sentence(caught.value)
            return
        released = self.mechanism.release_exactly(self.value, self.sensitivity, 1000, source)
        shape = np.shape(self.value) if self.released_shape is None else self.released_shape
        assert released.shape == (1000, *shape)
        assert p_value(self.tails(released)) > FALSE_ALARM
        for value in self.bad_values:
            with pytest.raises(InputError):
                self.mechanism.release_exactly(value, self.sensitivity, 1, source)


class PlainSource:
    """What the samplers of secure noise promise, drawn by a generator of numpy."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def step(self, scale: float) -> float:
        return math.ldexp(0.5, math.frexp(scale)[1] - 20)

    def laplace(self, scale: float, values: np.ndarray) -> np.ndarray:
        success = -math.expm1(-1 / scale)
        shape = values.shape
        noise = self.rng.geometric(success, shape) - self.rng.geometric(success, shape)
        return values.astype(object) + noise.astype(object)

    def normal(self, sigma: float, values: np.ndarray) -> np.ndarray:
        if sigma > 1e4:  # the rounded normal law differs from the discrete one by a part in 1e8
            noise = np.rint(self.rng.normal(scale=sigma, size=values.shape)).astype(np.int64)
            return values.astype(object) + noise.astype(object)
        k = np.arange(-math.ceil(12 * sigma), math.ceil(12 * sigma) + 1)
        masses = np.exp(-((k / sigma) ** 2) / 2)
        noise = self.rng.choice(k, size=values.shape, p=masses / masses.sum())
        return values.astype(object) + noise.astype(object)

    def integers(self, bound: int, shape: tuple[int, ...]) -> np.ndarray:
        return self.rng.integers(bound, size=shape)

    def below(self, bound: int) -> int:
        return random.Random(int(self.rng.integers(2**63))).randrange(bound)

    def events(self, probability: float, shape: tuple[int, ...]) -> np.ndarray:
        return self.rng.random(shape) < probability


def _is_a_sentence(error: Exception) -> bool:
    message = str(error)
    return message.endswith(".") and "\n" not in message


def _fields(mechanism: Mechanism) -> dict[str, object]:
    record = mechanism.to_dict()
    record.pop("kind")
    return record


def grid_delta(log_p, log_q, epsilon: float, weight: float = 1.0) -> float:
    """∑ max(p − e^ε q, 0) over a grid of outputs."""
    return float(np.maximum(np.exp(log_p) - np.exp(epsilon + log_q), 0).sum() * weight)
