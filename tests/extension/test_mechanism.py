"""A mechanism from outside the package: one class, by public names alone, in every place.

It is the staircase mechanism, which adds the least noise of all ε-private mechanisms for one number
(Geng and Viswanath 2015, "The optimal noise-adding mechanism in differential privacy").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from mechanism_conformance import MechanismConformance, grid_delta

from dpaudit import (
    AddRemove,
    Claim,
    Invocation,
    Laplace,
    Ledger,
    Plan,
    PrivacyUnit,
    TrustModel,
    Verdict,
    certify,
    guarantee,
)
from dpaudit.accounting import at_radius, compose, for_group
from dpaudit.auditing.noise.conformance import conformance
from dpaudit.auditing.replaying.recording import Routine
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.fields import OpenProbability, Positive
from dpaudit.base.validate import non_negative, real_array
from dpaudit.certificate import SubjectRecord
from dpaudit.interchange.dp_accounting import to_dp_event
from dpaudit.mechanisms import AdditiveNoise, FinitePair, Mechanism, Norm, Tails
from dpaudit.plan import MetricBall


@dataclass(frozen=True)
class Staircase(AdditiveNoise):
    """Adds noise whose density falls by e^−ε from one step of width Δ to the next.

    Attributes:
        epsilon: ε for a shift of at most Δ.
        width: Δ, the width of a step and the largest sensitivity.
        share: γ, the share of a step that is still as high as the one before.
    """

    kind: ClassVar[str] = "outside-staircase"
    norm: ClassVar[Norm] = Norm.L1
    real_valued: ClassVar[bool] = True
    epsilon: Positive
    width: Positive = 1.0
    share: OpenProbability = 0.5

    # -- privacy ---------------------------------------------------------------------------------

    def pair(self, sensitivity: float) -> FinitePair:
        """Losses −ε, 0 and ε; that of a shift s is ε with probability P(|n| ≤ s/2)/(1 − e^−ε).

        For a symmetric density that falls on both sides, the total variation of a shift s is
        P(|n| ≤ s/2), which grows with s, and losses of ±ε are all that make it up.
        """
        shift = non_negative(sensitivity=sensitivity)
        if shift > self.width:
            raise InputError(f"sensitivity is {shift}; it must be at most width, {self.width}.")
        if shift == 0:
            return FinitePair(np.zeros(1), np.ones(1), np.ones(1))
        high = float(self._within(shift / 2)) / -math.expm1(-self.epsilon)
        low = high * math.exp(-self.epsilon)
        masses = np.array([low, max(1 - high - low, 0.0), high])
        losses = np.array([-1.0, 0.0, 1.0]) * self.epsilon
        return FinitePair(losses, masses, masses[::-1].copy(), bound=Fraction(self.epsilon))

    def _within(self, size):
        """P(|n| ≤ size), one step after the other."""
        step, rest = np.divmod(size / self.width, 1)
        first = np.minimum(rest, self.share)
        second = np.maximum(rest - self.share, 0.0) * math.exp(-self.epsilon)
        part = (first + second) / (self.share + (1 - self.share) * math.exp(-self.epsilon))
        return -np.expm1(-self.epsilon * step) + np.exp(-self.epsilon * step) * part * -math.expm1(
            -self.epsilon
        )

    # -- release ---------------------------------------------------------------------------------

    def prepare(self, value):
        """One number: for several, shifts would have to be composed."""
        array = real_array(value=value)
        if array.size > 1:
            raise UnsupportedError(f"value has {array.size} entries; release them one by one.")
        return array

    def noise(self, shape, rng):
        """Algorithm 1: a sign, a step, which part of it, and where there."""
        fall = math.exp(-self.epsilon)
        step = rng.geometric(1 - fall, shape) - 1
        first = rng.random(shape) < self.share / (self.share + (1 - self.share) * fall)
        place = rng.random(shape)
        within = np.where(first, self.share * place, self.share + (1 - self.share) * place)
        return rng.choice([-1.0, 1.0], shape) * (step + within) * self.width

    # -- law -------------------------------------------------------------------------------------

    def log_noise_density(self, noise):
        """−ε for each step, and once more behind its share."""
        step, rest = np.divmod(np.abs(noise) / self.width, 1)
        fall = math.exp(-self.epsilon)
        highest = -math.expm1(-self.epsilon) / (2 * self.width)
        highest /= self.share + (1 - self.share) * fall
        return math.log(highest) - self.epsilon * (step + (rest >= self.share))

    def noise_tails(self, noise, rng):
        size = np.abs(noise).ravel()
        return Tails(1 - self._within(size), noise.ravel() > 0, np.empty(0))


class TestStaircase(MechanismConformance):
    mechanism = Staircase(epsilon=1.2, share=0.4)
    bad_parameters = ({"epsilon": 0}, {"width": -1.0}, {"share": 1.0}, {"share": "a"})
    unlike = Laplace(scale=0.4)

    def mean(self):
        return 0.0

    def variance(self):
        noise = np.arange(-40, 40, 1e-4) + 5e-5
        return float((noise**2 * np.exp(self.mechanism.log_noise_density(noise))).sum() * 1e-4)

    def exact_delta(self, epsilon):
        noise = np.arange(-40, 41, 1e-4) + 5e-5
        log_p, log_q = (self.mechanism.log_noise_density(noise - x) for x in (1.0, 0.0))
        return grid_delta(log_p, log_q, epsilon, 1e-4)

    @pytest.mark.parametrize("sensitivity", [0.1, 0.5, 0.97])
    def test_shorter_shifts_cost_what_their_density_says(self, sensitivity):
        noise = np.arange(-40, 41, 1e-4) + 5e-5
        log_p, log_q = (self.mechanism.log_noise_density(noise - x) for x in (sensitivity, 0.0))
        for epsilon in (0.0, 0.4, 1.1):
            exact = grid_delta(log_p, log_q, epsilon, 1e-4)
            proved = float(self.mechanism.pair(sensitivity).delta(epsilon))
            assert proved == pytest.approx(exact, abs=1e-4)


SUM = Staircase(epsilon=0.5, width=2.0)


def declared(mechanism: Mechanism = SUM, **fields) -> Invocation:
    fields = {"sensitivity": 2.0, "relation": AddRemove(), "at": "sum"} | fields
    return Invocation(mechanism, unit=PrivacyUnit("row"), trust=TrustModel.CENTRAL, **fields)


def test_a_plan_with_it_is_certified_and_is_data():
    plan = Plan.of(declared(count=2))
    certificate = certify(plan, subject=SubjectRecord("two sums"), claim=Claim(1.0))
    assert certificate.verdict is Verdict.CERTIFIED
    assert certificate.guarantee.epsilon == 1.0
    again = Plan.from_dict(plan.to_dict())
    assert again == plan
    assert type(again.invocations[0].mechanism) is Staircase
    with pytest.raises(InputError, match=r"unknown key 'widht'; did you mean 'width'"):
        Mechanism.parse({"kind": "outside-staircase", "epsilon": 1.0, "widht": 2.0})


def test_every_accountant_takes_it():
    pure = guarantee(Plan.of(declared(count=20)), 1e-6, "pure").epsilon
    for accountant in ("zcdp", "rdp", "pld", "best"):
        assert 0 < compose(Plan.of(declared(count=20)), accountant).epsilon(1e-6).upper <= pure
    assert guarantee(for_group(Plan.of(declared()), 3)).epsilon == pytest.approx(1.5)
    near = Plan.of(declared(relation=MetricBall(1.0)))
    assert guarantee(at_radius(near, 0.5)).epsilon <= guarantee(near).epsilon


def test_a_ledger_releases_it():
    with Ledger(Plan.of(declared()), rng=np.random.default_rng(0)) as ledger:
        released = ledger.release(SUM, 7.0, at="sum")
    assert released == SUM.release(7.0, np.random.default_rng(0))


def test_noise_that_is_not_its_own_is_found():
    class Halved(Staircase):
        kind = "outside-halved-staircase"

        def noise(self, shape, rng):
            return super().noise(shape, rng) / 2

    for law, clean in ((SUM, True), (Halved(0.5, 2.0), False)):
        plan = Plan.of(declared(law))
        routine = Routine(plan, lambda data, ledger, rng, law=law: ledger.release(law, data))
        report = conformance(routine, 5.0, seed=1, runs=300)
        assert report.untested == ()
        assert report.clean == clean


def test_where_it_offers_nothing_one_sentence_says_so():
    pytest.importorskip("opendp", reason="the extra 'secure' is not installed")
    from dpaudit.ledger import SecureNoise

    plan = Plan.of(declared())
    ledger = Ledger(plan, noise=SecureNoise())
    with pytest.raises(UnsupportedError, match=r"^outside-staircase at 'sum' has no exact sampler"):
        ledger.release(SUM, 7.0)
    assert len(ledger) == 0
    with pytest.raises(UnsupportedError, match=r"^outside-staircase at 'sum' has no DpEvent\.$"):
        to_dp_event(plan)
    with pytest.raises(UnsupportedError, match="has no finite list of outputs"):
        SUM.probabilities(0.0)
