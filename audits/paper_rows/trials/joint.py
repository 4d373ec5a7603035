"""What the rows on Dubey 2021 run: trials with privacy and without, and what its noise costs.

``audits.paper_rows`` runs them for Figures 1 and 2, Table 1 and the lemmas on noise.

The text does not say how decision sets, rewards and kernels of Table 1 were chosen. Here every
round has 25 uniform points of the domain; functions are scaled to [0, 1] by their known extremes;
rewards have normal noise of deviation 0.1 and are clipped to [−0.25, 1.25]; regret is against the
best point of the round. Camelback has 64 eigenfeatures (SE, l = 0.2), Styblinski–Tang-20 additive
quadrature features, 8 a coordinate (SE, l = 0.4), Michalewicz-10 additive eigenfeatures, 20 a
coordinate (SE, l = 0.08).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from dpaudit import Invocation, Ledger, Plan, PrivacyUnit, ReplaceOne, TrustModel, guarantee
from dpaudit.mechanisms import BinaryTree, ContinualGaussian, Gaussian
from private_bo.gp.types import Array
from private_bo.joint.central import JointGPUCB
from private_bo.joint.local_joint import Lemma5Statistics
from private_bo.joint.parties import JointServer
from private_bo.joint.statistics import CentredStatistics, Estimate, Sums, lemma_2_sigma
from private_bo.joint.subject import (
    BENCHMARKS,
    DecisionProblem,
    PrivateApproximateGPUCB,
    benchmark,
    benchmark_features,
    bump,
)

Configurations: TypeAlias = dict[str, tuple[PrivateApproximateGPUCB, bool]]
"""Algorithms by label, with whether each is run privately."""


def nonprivate_regret(config: PrivateApproximateGPUCB, problem: DecisionProblem) -> Array:
    """Cumulative regret of the same algorithm on exact sums, (rounds,); no claim of any kind."""
    statistics = CentredStatistics(config.size, config.reward_range)
    learner = replace(config.learner(), estimate=Estimate.SHRUNK)
    server = JointServer(config.feature_map, learner, config.refresh)
    matrix, vector = np.zeros((config.size, config.size)), np.zeros(config.size)
    choices: list[int] = []
    for turn in range(problem.rounds):
        if turn and server.due(turn):
            server.observe(Sums(turn, vector, matrix, 0.0, 0.0))
        arm, phi = server.choose(problem.decision_set(turn))
        matrix += np.outer(phi, phi)
        vector += statistics.value(problem.reward(turn, arm)) * phi
        choices.append(arm)
    return problem.regret(choices)


def run_trial(
    config: PrivateApproximateGPUCB,
    private: bool,
    source: str,
    steps: int,
    seed: np.random.SeedSequence,
    noise_seed: np.random.SeedSequence,
) -> Array:
    """One trial: cumulative regret, (steps,)."""
    rng = np.random.default_rng(seed)
    problem = benchmark(source, rng, steps) if source in BENCHMARKS else bump(rng, steps)
    if not private:
        return nonprivate_regret(config, problem)
    rng = np.random.default_rng(noise_seed)
    with Ledger(config.plan(), rng=rng) as ledger:
        result = config.run(problem, ledger, rng)
    return np.array(result.for_owner.series["cumulative regret"])


ALPHAS = (10.0, 1.0, 0.1)
PRINTED = {
    "camelback": (519, 775, 1029, 3324),
    "styblinski-tang-20": (885, 1667, 2680, 4493),
    "michalewicz-10": (901, 1558, 2883, 5002),
}
"""Non-private, then private at α = 10, 1 and 0.1."""


def configuration(name: str, *, steps: int) -> JointGPUCB:
    """The algorithm for one function of Table 1; α = 1 and β = 0.1."""
    return JointGPUCB(
        steps=steps,
        reward_range=(-0.25, 1.25),
        feature_map=benchmark_features(name),
        noise_variance=0.005,
        prior_variance=0.05,
    )


_STEPS = 1024


@dataclass(frozen=True)
class Cost:
    """What the noise of a lemma costs.

    Attributes:
        alpha: claimed ε.
        beta: claimed δ.
        bound: B.
        epsilon: what is proved at β.
        orthogonal: what a certain pair of users with orthogonal features costs, exactly.
        attained: the largest cost of a pair of users that is known to exist.
    """

    alpha: float
    beta: float
    bound: float
    epsilon: float
    orthogonal: float
    attained: float

    @property
    def verdict(self) -> str:
        """What is known of the claim: it holds, is false, or is not proved."""
        if self.epsilon <= self.alpha:
            return "holds"
        return "false" if self.attained > self.alpha else "not proved"


def lemma_2_cost(alpha: float, beta: float, bound: float, *, printed: bool = False) -> Cost:
    """ε(β) of Lemma 2's tree, with rewards clipped to the lemma's own high-probability bound.

    L² = 1 + B² + 2ρ² ln(8T/β) at T = 1024 and ρ² = 1; replacing a user moves the matrix by up to
    √2 L². Where rewards are Gaussian and not clipped, the lemma spends another β/4 on their tails,
    which is not counted. No two users reach √2 L² where y is large; users with orthogonal features
    and rewards of the bound and 0 are √(L⁴ + 1) apart. With ``printed`` the σ is that of the
    lemma's statement, which is the σ² of its proof.
    """
    square = 1 + bound**2 + 2 * math.log(8 * _STEPS / beta)
    sigma = lemma_2_sigma(alpha, beta, steps=_STEPS, bound=bound, variance=1.0, printed=printed)
    tree = ContinualGaussian(
        sigma=sigma,
        factorization=BinaryTree(_STEPS, release_root=True),
        participations=1,
        fixed_steps=True,
        symmetric=True,
    )
    proved = _epsilon(tree, math.sqrt(2) * square, beta)
    attained = _epsilon(tree, math.hypot(square, 1.0), beta)
    return Cost(alpha, beta, bound, proved, attained, attained)


def lemma_5_cost(alpha: float, beta: float, bound: float) -> Cost:
    """ε(β) of Lemma 5's joint release, with |y| clipped to the lemma's L.

    L cancels, so that neither B nor m matters. The proof speaks of the worst pair, which exists;
    replacing a user by one with orthogonal features costs less.
    """
    statistics = Lemma5Statistics.of_lemma(28, alpha, beta, bound)
    proved = _epsilon(Gaussian(1.0), statistics.sensitivity, beta)
    orthogonal = _epsilon(Gaussian(1.0), statistics.orthogonal_sensitivity, beta)
    return Cost(alpha, beta, bound, proved, orthogonal, proved)


def _epsilon(mechanism: Gaussian | ContinualGaussian, sensitivity: float, beta: float) -> float:
    invocation = Invocation(
        mechanism, sensitivity, PrivacyUnit("user"), ReplaceOne(), TrustModel.JOINT
    )
    proved: float = guarantee(Plan.of(invocation), beta).epsilon
    return proved
