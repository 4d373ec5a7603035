"""DP-FTS-DE as a mechanism: its privacy configuration, plan, claim and calibration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import groupby
from typing import Annotated, Self

from dpaudit.accounting import AccountantName, compose, least_noise
from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import OpenProbability, Positive, Rate
from dpaudit.certificate import Claim
from dpaudit.mechanisms import Gaussian
from dpaudit.plan import (
    FixedSizeSampling,
    Invocation,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    Relation,
    ReplaceOne,
    TrustModel,
    ZeroOut,
)
from dpaudit.project import Subject
from private_bo.federated.federation import Federation
from private_bo.federated.server import Release
from private_bo.federated.settings import Bounded, between
from private_bo.gp.types import Array

_AGENT = PrivacyUnit("agent")


class SamplingScheme(StrEnum):
    """How the server draws the agents of a round."""

    POISSON = "poisson"
    """Each with probability q, independently."""
    FIXED_SIZE = "fixed-size"
    """A subset of q N agents (footnote 14)."""


class Sensitivity(StrEnum):
    """How far one agent can move a round's joint release."""

    JOINT = "joint"
    """max_n (S/(q√P)) √(Σ_i φ_n^(i)²), from the public weights."""
    PAPER = "paper"
    """φ_max S/q, the paper's bound."""


@dataclass(frozen=True)
class PrivateFederation(Federation, Subject):
    """Base of DP-FTS-DE: fields as in the base class, and those of privacy.

    One agent is protected over the whole run: its vectors may as well have been zero. N and the
    weights are public. The claim is the privacy loss that the paper publishes: the classic moments
    accountant at T rounds. The plan declares what the public weights really allow, round by round.

    Attributes:
        rate: q.
        noise_multiplier: z.
        clip: S, a public constant.
        delta: δ; None for N^-1.1.
        epsilon: the ε that is claimed; None for the published loss.
        sampling: how agents are drawn. With subsets of fixed size, the relation is that an agent's
            vectors are replaced, which has twice the sensitivity.
        noise_scaled_to: the noise is z times this sensitivity.
        declared: the sensitivity that the plan states.
        last_broadcast: whether the server also answers the reports of t = T, as Algorithm 1 does,
            though no agent acts on that broadcast.

    Raises:
        InputError: if a field is out of its range, or q N < 1.
    """

    rate: Rate = 0.25
    noise_multiplier: Annotated[float, between(1e-18, 1e18)] = 1.0
    clip: Bounded = 11.0
    delta: OpenProbability | None = None
    epsilon: Positive | None = None
    sampling: SamplingScheme = SamplingScheme.POISSON
    noise_scaled_to: Sensitivity = Sensitivity.PAPER
    declared: Sensitivity = Sensitivity.JOINT
    last_broadcast: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.delta is None and self.agents < 2:
            raise InputError("agents is 1; it must be at least 2, or delta be given.")
        self._require_sample()

    def _require_sample(self) -> None:
        expected = self.rate * self.agents
        if expected < 1 - 1e-9:
            raise InputError(
                f"rate is {self.rate:g}, which samples {expected:g} of {self.agents} agents on "
                f"average; it must be at least {1 / self.agents:g}, for one agent."
            )
        if self.sampling is SamplingScheme.FIXED_SIZE and abs(expected - round(expected)) > 1e-9:
            raise InputError(
                f"rate is {self.rate:g}, which makes subsets of {expected:g} agents; under "
                f"fixed-size sampling it must be a multiple of 1/{self.agents}."
            )

    # -- privacy ---------------------------------------------------------------------------------

    @property
    def target_delta(self) -> float:
        """δ, N^-1.1 where not given (Section 5)."""
        return self.agents**-1.1 if self.delta is None else self.delta

    @property
    def exchanges(self) -> int:
        """How many releases there are: T, for t = 0…T − 1, and one more with the last broadcast."""
        return self.rounds + int(self.last_broadcast)

    @property
    def scheme(self) -> PoissonSampling | FixedSizeSampling:
        """The sampling, as accountants know it."""
        if self.sampling is SamplingScheme.FIXED_SIZE:
            return FixedSizeSampling(round(self.rate * self.agents), self.agents)
        return PoissonSampling(self.rate)

    @property
    def relation(self) -> Relation:
        """Zero-out; for subsets of fixed size, for which theorems speak of it, replace-one."""
        return ReplaceOne() if self.sampling is SamplingScheme.FIXED_SIZE else ZeroOut()

    def sensitivity(self, kind: Sensitivity) -> Array:
        """How far one agent's vectors can move each release from where zeros leave it, (T,)."""
        weights = self.public_weights
        if kind is Sensitivity.PAPER:
            return weights.paper_sensitivity(self.clip, self.rate)
        return weights.true_sensitivity(self.clip, self.rate)

    @cached_property
    def sigmas(self) -> Array:
        """Standard deviation of the noise of each round, (T,)."""
        sigmas: Array = self.noise_multiplier * self.sensitivity(self.noise_scaled_to)
        return sigmas

    @cached_property
    def _stretches(self) -> tuple[tuple[int, int, Gaussian, float], ...]:
        """Consecutive rounds that are alike: first, count, mechanism, sensitivity."""
        factor = self.relation.contribution_factor
        moved = factor * self.sensitivity(self.declared)
        found, start = [], 0
        for pair, alike in groupby(zip(self.sigmas.tolist(), moved.tolist(), strict=True)):
            count = len(list(alike))
            found.append((start, count, Gaussian(pair[0]), pair[1]))
            start += count
        return tuple(found)

    def plan(self) -> Plan:
        """One subsampled Gaussian of the joint vector for every round, with its own sensitivity."""
        return Plan.of(
            *(
                Invocation(
                    mechanism=mechanism,
                    sensitivity=sensitivity,
                    unit=_AGENT,
                    relation=self.relation,
                    trust=TrustModel.CENTRAL,
                    count=count,
                    sampling=self.scheme,
                    at=_label(start, count),
                )
                for start, count, mechanism, sensitivity in self._stretches
            )
        )

    @cached_property
    def releases(self) -> tuple[Release, ...]:
        """How each round is released."""
        return tuple(
            Release(mechanism, _label(start, count))
            for start, count, mechanism, _ in self._stretches
            for _ in range(count)
        )

    @cached_property
    def published_loss(self) -> float:
        """ε of the classic moments accountant at T rounds of noise z: what the paper prints."""
        once = Invocation(
            Gaussian(self.noise_multiplier),
            1.0,
            _AGENT,
            ZeroOut(),
            TrustModel.CENTRAL,
            count=self.rounds,
            sampling=PoissonSampling(self.rate),
        )
        return compose(Plan.of(once), AccountantName.MOMENTS).epsilon(self.target_delta).upper

    def claim(self) -> Claim:
        """The published loss, or ``epsilon`` where it is given; at δ = N^-1.1.

        The paper publishes none for subsets of fixed size: there it is what Rényi accounting gives.
        """
        if self.epsilon is not None:
            return Claim(self.epsilon, self.target_delta, "stated in the configuration")
        if self.sampling is SamplingScheme.FIXED_SIZE:
            proved = compose(self.plan(), AccountantName.RDP).epsilon(self.target_delta).upper
            return Claim(proved, self.target_delta, "Rényi accounting (footnote 14)")
        source = "Dai, Low & Jaillet 2021, Section 5: the moments accountant of Abadi et al. 2016"
        return Claim(self.published_loss, self.target_delta, source)

    def certified(self, declared: Sensitivity) -> float:
        """The ε that the least accountant proves if the plan declares that sensitivity."""
        plan = replace(self, declared=declared).plan()
        return compose(plan).epsilon(self.target_delta).upper

    def calibrated(self, epsilon: float | None = None) -> Self:
        """The same algorithm with the least z for which the certified ε meets a target.

        Args:
            epsilon: target at the same δ; by default the present claim, so that the published loss
                buys as little noise as it can.

        Raises:
            InputError: if no z meets it.

        >>> from private_bo.federated import DPFTS
        >>> published = DPFTS(agents=29, rate=0.35, rounds=60)
        >>> round(published.calibrated().noise_multiplier, 2)
        0.82
        """
        target = self.claim().epsilon if epsilon is None else validate.positive(epsilon=epsilon)

        def meets(multiplier: float) -> bool:
            plan = replace(self, noise_multiplier=multiplier).plan()
            return compose(plan, AccountantName.PLD).epsilon(self.target_delta).upper <= target

        found = least_noise(meets, tolerance=1e-5)
        if found is None:
            raise InputError(f"no noise multiplier meets epsilon {target}; choose a larger one.")
        return replace(self, noise_multiplier=found, epsilon=target)


def _label(start: int, count: int) -> str:
    return f"iteration {start}" if count == 1 else f"iterations {start} to {start + count - 1}"
