"""Gradient canaries: the strongest white-box attack on DP-SGD.

The attacker sees every noisy gradient and owns one example whose gradient is, whenever it takes
part, a fixed direction of the largest norm in which no other gradient points (the Dirac canary of
Nasr et al. 2023, "Tight Auditing"). Projected on it, step t shows ``B_t + N(0, s_t²)`` with
``B_t ~ Bernoulli(q_t)`` if the example is in the data, and the noise alone if not. This is the pair
that dominates the subsampled Gaussian mechanism, so that no attack can do better, and its
log-likelihood ratio is a sum over steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dpaudit import validate
from dpaudit.auditing.distinguishing.experiment import Release
from dpaudit.errors import InputError
from dpaudit.fields import Checked, Positive, Rate
from dpaudit.mechanisms import Gaussian
from dpaudit.mechanisms.pairs import Floats
from dpaudit.plan import AddRemove, Invocation, Plan, PoissonSampling, ZeroOut


@dataclass(frozen=True)
class GradientCanary(Checked):
    """Likelihood ratio of the projected gradients of a whole training; one entry for each step.

    Projections are in units of the clip norm (the declared sensitivity): the sum of the clipped
    gradients plus noise, times the canary's direction, divided by the clip norm.

    Attributes:
        rates: probability with which the canary takes part in each step, in (0, 1].
        noises: standard deviation of each step's noise, in units of the clip norm: the noise
            multiplier.
        name: what an event of this score speaks of.
        method: how the evidence is made.
    """

    rates: tuple[Rate, ...]
    noises: tuple[Positive, ...]
    name: str = "log-likelihood ratio of the projected gradients"
    method: str = "white-box gradient canary"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.rates or len(self.rates) != len(self.noises):
            raise InputError(
                f"rates has {len(self.rates)} steps and noises {len(self.noises)}; they must have "
                "the same number, at least 1."
            )

    @classmethod
    def of(cls, plan: Plan) -> GradientCanary:
        """The canary of a declared DP-SGD training.

        One example belongs to one group of units. Of several groups the canary is in the one whose
        steps tell most of it (by their Rényi divergence of order 2; any choice is a valid attack).

        Args:
            plan: Gaussian invocations, Poisson-sampled or not, one use for each step.

        Raises:
            InputError: if a mechanism is not Gaussian, is sampled otherwise, or neighbours do not
                differ in whether one contribution is there.

        Example:
            >>> from dpaudit import AddRemove, Gaussian, Invocation, PrivacyUnit, TrustModel
            >>> from dpaudit.plan.sampling import PoissonSampling
            >>> steps = Invocation(
            ...     Gaussian(2.0), 1, PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL,
            ...     count=50, sampling=PoissonSampling(0.1),
            ... )
            >>> canary = GradientCanary.of(Plan.of(steps))
            >>> len(canary.rates), canary.rates[0], canary.noises[0]
            (50, 0.1, 2.0)
        """
        if not isinstance(plan, Plan):
            raise InputError(f"plan is {plan!r:.60}; it must be a Plan.")
        if not isinstance(plan.relation, AddRemove | ZeroOut):
            raise InputError(
                f"plan has the relation {plan.relation}; a gradient canary is there or not, which "
                "is add-remove or zero-out."
            )
        for each in plan.invocations:
            if not isinstance(each.mechanism, Gaussian) or each.sensitivity == 0:
                raise InputError(
                    f"{each.describe()} is not Gaussian noise on gradients; a gradient canary "
                    "needs nothing else in the plan."
                )
            if not isinstance(each.sampling, PoissonSampling | None):
                raise InputError(
                    f"{each.describe()} has {each.sampling.kind} sampling; a gradient canary "
                    "needs Poisson sampling or none."
                )
        return max(map(cls._of_unit, plan.by_unit()), key=cls._divergence)

    @classmethod
    def _of_unit(cls, invocations: Iterable[Invocation]) -> GradientCanary:
        rates: list[float] = []
        noises: list[float] = []
        for each in invocations:
            rate = each.sampling.rate if isinstance(each.sampling, PoissonSampling) else 1.0
            noise = each.mechanism.sigma if isinstance(each.mechanism, Gaussian) else math.nan
            rates += [rate] * each.count
            noises += [noise / each.sensitivity] * each.count
        return cls(tuple(rates), tuple(noises))

    def _divergence(self) -> float:
        """Rényi divergence of order 2 of transcripts with the canary from those without."""
        rates = np.array(self.rates)
        with np.errstate(divide="ignore"):
            absent = np.log1p(-np.square(rates))
        steps = np.logaddexp(absent, 2 * np.log(rates) + np.array(self.noises) ** -2.0)
        return float(steps.sum())

    @property
    def steps(self) -> int:
        """How many noisy gradients there are."""
        return len(self.rates)

    def __call__(self, outputs: Floats) -> Floats:
        """Log-likelihood ratio of transcripts, shape (n, steps) to shape (n,).

        Raises:
            InputError: if the number of steps is another one.
        """
        if outputs.ndim != 2 or outputs.shape[1] != self.steps:
            raise InputError(
                f"transcripts have shape {outputs.shape}; they need {self.steps} steps on the "
                "second axis."
            )
        rates, noises = np.array(self.rates), np.array(self.noises)
        with np.errstate(divide="ignore"):
            absent, present = np.log1p(-rates), np.log(rates)
        ratios = np.logaddexp(absent, present + (outputs - 0.5) / noises**2)
        sums: Floats = ratios.sum(axis=1)
        return sums

    def with_noise_over(self, strength: float) -> GradientCanary:
        """The canary of a training with its noise divided by ``strength``."""
        divisor = validate.positive(strength=strength)
        return replace(self, noises=tuple(noise / divisor for noise in self.noises))

    def simulate(self, strength: float = 1.0) -> Release:
        """A release of transcripts of training as declared, with the noise divided by ``strength``.

        Its data are 1.0 where the canary is among the examples and 0.0 where not.
        """
        return partial(_simulated, self.with_noise_over(strength))


def _simulated(
    canary: GradientCanary, present: float, size: int, rng: np.random.Generator
) -> Floats:
    noise = rng.normal(size=(size, canary.steps))
    noise *= np.array(canary.noises)
    if present:
        noise += rng.random(noise.shape) < np.array(canary.rates)
    return noise
