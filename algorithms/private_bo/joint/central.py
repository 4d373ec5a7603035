"""Joint differential privacy: approximate GP-UCB with a trusted privatiser (Dubey 2021).

The privatiser counts users and shows noisy sums; the server chooses arms from these alone. One
user's data reach all other users only through them, which is joint differential privacy. The print
numbers no lines: here every printed line of an algorithm counts, its first being line 1.

>>> from dpaudit.ledger import Ledger
>>> algorithm = JointGPUCB(epsilon=1.0, delta=0.1, steps=64)
>>> rng = np.random.default_rng(0)
>>> problem = algorithm.load("bump", rng)
>>> with Ledger(algorithm.plan(), rng=rng) as ledger:
...     result = algorithm.run(problem, ledger, rng)
>>> len(ledger), result.summary["users"], str(algorithm.claim())
(1, 64, 'ε = 1, δ = 0.1')
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.base.errors import UnsupportedError
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import BinaryTree, ContinualGaussian
from dpaudit.mechanisms.continual import Factorization
from dpaudit.plan import Group, Invocation, TrustModel
from private_bo.joint.parties import JointPrivatiser, JointServer, Period
from private_bo.joint.statistics import (
    CentredStatistics,
    ContinualNoise,
    Noise,
    PaperStatistics,
    Statistics,
    lemma_2_sigma,
    lemma_3_shift,
)
from private_bo.joint.subject import DecisionProblem, PrivateApproximateGPUCB

_LONGEST_AUDIT = 4096
_MARGIN = 1e-9
"""Relative excess of the calibrated σ, for the accountant's rounding."""


@dataclass(frozen=True)
class JointGPUCB(PrivateApproximateGPUCB):
    """Algorithms 1 and 2: fields as in the base class, and three more.

    With ``noise="paper"`` the privatiser adds the noise of Lemma 2's proof to a binary tree with
    its root, over [φ; y][φ; y]ᵀ, and the server shifts by Lemma 3; with ``noise="printed"`` that of
    the lemma's statement. What either really costs is the certificate.

    Attributes:
        lemma_logarithm: whether the lemma's noise carries its logarithm, for rewards with Gaussian
            noise of variance ``noise_variance``. Section 6.1, whose rewards are bounded, drops it.
        continual_noise: how noise is correlated over rounds, under tight noise.
        doubling: for unknown T (Remark 5): rounds 1, 2, 3–4, 5–8, … have noise of their own, for
            streams of that length. ``steps`` is then only the largest T that is prepared for. A
            user is in one stream, so that the cost is that of one stream.
    """

    trust: ClassVar[TrustModel] = TrustModel.JOINT
    source: ClassVar[str] = "Dubey 2021, Lemma 2 and Algorithms 1 and 2"
    lemma_finding: ClassVar[tuple[str, str]] = ("noise-not-calibrated", "sums")

    continual_noise: ContinualNoise = ContinualNoise.BUFFERED
    doubling: bool = False
    lemma_logarithm: bool = False

    # -- privacy ---------------------------------------------------------------------------------

    @property
    def statistics(self) -> Statistics:
        """The paper's matrix, or weighted and centred statistics."""
        if self.noise is not Noise.TIGHT:
            return PaperStatistics(self.size, self.reward_range)
        return self.tight_statistics(CentredStatistics)

    @cached_property
    def periods(self) -> tuple[Period, ...]:
        """The streams of noise, one after the other."""
        if not self.doubling:
            return (Period(0, self.mechanism(self.steps), "sums"),)
        lengths = [1]
        while sum(lengths) < self.steps:
            lengths.append(min(sum(lengths), self.steps - sum(lengths)))
        starts = [sum(lengths[:place]) for place in range(len(lengths))]
        return tuple(
            Period(start, self.mechanism(length), f"rounds {start + 1} to {start + length}")
            for start, length in zip(starts, lengths, strict=True)
        )

    def mechanism(self, steps: int) -> ContinualGaussian:
        """The stream of noise for that many rounds, each of one user: calibrated, or of Lemma 2."""
        about: dict[str, Any] = {"participations": 1, "fixed_steps": True}
        about["symmetric"] = self.statistics.has_matrix
        if self.noise is not Noise.TIGHT:
            tree = BinaryTree(steps, release_root=True)
            return ContinualGaussian(sigma=self._lemma_sigma(steps), factorization=tree, **about)
        found = ContinualGaussian.calibrated(
            epsilon=self.epsilon,
            delta=self.delta,
            sensitivity=self.statistics.sensitivity,
            factorization=self.continual_noise.factorization(steps),
            **about,
        )
        return replace(found, sigma=found.sigma * (1 + _MARGIN))

    def _lemma_sigma(self, steps: int) -> float:
        return lemma_2_sigma(
            self.epsilon,
            self.delta,
            steps=steps,
            bound=self.norm_bound,
            variance=self.noise_variance if self.lemma_logarithm else 0.0,
            printed=self.noise is Noise.PRINTED,
        )

    def _paper_shift(self) -> float | None:
        return lemma_3_shift(
            self._lemma_sigma(self.steps),
            steps=self.steps,
            size=self.size,
            confidence=self.confidence,
        )

    def invocations(self) -> Iterator[Invocation]:
        """One continual release; with doubling one for each period, over disjoint users."""
        for period in self.periods:
            group = Group(period.at) if self.doubling else None
            yield self.invocation(
                period.mechanism, self.statistics.sensitivity, group=group, at=period.at
            )

    def audit_release(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """What a canary in the first round leaves in the parameters of all rounds.

        The other users' contributions are the same on both sides, hence left out. The prefix sums
        of the first stream are weighted by S⁻¹1, with S their noise's covariance over time: the
        sufficient statistic for the canary's contribution, and post-processing of what others see.
        The data are the canary, ``{"features": [...], "reward": y}``; features that are left out
        are 0, and the release is that of the others alone.

        Returns:
            Shape (size, k + 1, k + 1) for k features, or (size, k) where no matrix is released.

        Raises:
            InputError: if the canary is malformed.
            UnsupportedError: if the stream has more than 4096 steps.
        """
        contribution = self.contribution(data)
        mechanism = max(self.periods, key=lambda period: period.steps).mechanism
        steps = mechanism.factorization.steps
        if steps > _LONGEST_AUDIT:
            raise UnsupportedError(
                f"steps is {self.steps}; an audit takes at most {_LONGEST_AUDIT}, so set fewer."
            )
        weights, energy = _sufficient(mechanism.factorization)
        stream = mechanism.start((size, *contribution.shape), rng)
        total = np.zeros((size, *contribution.shape))
        nothing = np.zeros_like(total)
        everywhere = np.broadcast_to(contribution, total.shape)
        for turn, weight in enumerate(weights):
            total += weight * stream.add(everywhere if turn == 0 else nothing)
        return total / math.sqrt(energy)

    def modelled(self) -> Iterator[tuple[dict[str, Any], DecisionProblem]]:
        """As in the base class, for one stream that an audit can take."""
        if len(self.periods) == 1 and self.steps <= _LONGEST_AUDIT:
            yield from super().modelled()

    def statistic(self, releases: Sequence[Any]) -> NDArray[Any]:
        """What :meth:`audit_release` draws, of a run on :meth:`modelled` data."""
        other = self.contribution(self.with_only_arm(self.reward_range[0]))
        weights, energy = _sufficient(self.periods[0].mechanism.factorization)
        others = np.multiply.outer(np.arange(len(releases)), other)
        return np.tensordot(weights, np.stack(releases) - others, 1) / math.sqrt(energy)

    # -- run -------------------------------------------------------------------------------------

    def parties(self, ledger: Ledger) -> tuple[JointServer, JointPrivatiser]:
        """A server and a privatiser, as separate objects; the second alone takes raw data."""
        server = JointServer(self.feature_map, self.learner(), self.refresh)
        privatiser = JointPrivatiser(self.statistics, self.periods, ledger, self.gate())
        return server, privatiser

    def search(self, problem: DecisionProblem, ledger: Ledger, rng: np.random.Generator) -> Any:
        """Play every round; the server is deterministic."""
        server, privatiser = self.parties(ledger)  # Algorithm 1, lines 1-2
        choices: list[int] = []
        for turn in range(problem.rounds):  # line 3
            arms = problem.decision_set(turn)  # line 5
            if server.due(turn):
                server.observe(privatiser.sums())  # lines 6-8, where V changes enough
            arm, features = server.choose(arms)  # line 9
            reward = problem.reward(turn, arm)  # line 10
            privatiser.update(features, reward)  # lines 11 and 17-19
            choices.append(arm)
        privatiser.close()
        return choices


@lru_cache(maxsize=8)
def _sufficient(factorization: Factorization) -> tuple[NDArray[np.float64], float]:
    """S⁻¹1 and 1ᵀS⁻¹1, with S the covariance over time of the noise of the prefix sums."""
    from scipy.linalg import solve_triangular

    root = factorization.noise_root()
    ones = solve_triangular(root, np.ones(factorization.steps), lower=True)
    return solve_triangular(root.T, ones, lower=False), float(ones @ ones)
