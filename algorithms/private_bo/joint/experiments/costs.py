"""What the noise of Dubey 2021, Lemmas 2 and 5, really costs.

``python -m private_bo.joint.experiments.costs -o DIR`` writes ``joint_costs.md`` to DIR and to the
terminal: for each α, β and B the proved ε(β), and whether the claim of α holds.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpaudit import Invocation, Plan, PrivacyUnit, ReplaceOne, TrustModel, guarantee
from dpaudit.mechanisms import BinaryTree, ContinualGaussian, Gaussian
from private_bo.experiments import command, save, table
from private_bo.joint.experiments.figures import arguments
from private_bo.joint.local_joint import Lemma5Statistics
from private_bo.joint.statistics import lemma_2_sigma

READINGS: dict[str, dict[str, Any]] = {
    "ρ² = 1/4": {"variance": 0.25},
    "bounded rewards": {"variance": 0.0},
    "as its statement prints σ": {"printed": True},
}
ALPHAS, BETAS, BOUNDS = (0.1, 1.0, 10.0), (0.1, 1e-3, 1e-5), (1.0, 10.0, 100.0)


@dataclass(frozen=True)
class Cost:
    """One row.

    Attributes:
        lemma: which.
        alpha: claimed ε.
        beta: claimed δ.
        bound: B.
        epsilon: what is proved at β.
        orthogonal: what a certain pair of users with orthogonal features costs, exactly.
        attained: the largest cost of a pair of users that is known to exist.
    """

    lemma: str
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


def lemma_2_cost(
    alpha: float,
    beta: float,
    bound: float,
    *,
    steps: int = 1024,
    variance: float = 1.0,
    printed: bool = False,
) -> Cost:
    """ε(β) of Lemma 2's tree, with rewards clipped to the lemma's own high-probability bound.

    L² = 1 + B² + 2ρ² ln(8T/β); replacing a user moves the matrix by up to √2 L². Where rewards are
    Gaussian and not clipped, the lemma spends another β/4 on their tails, which is not counted.
    No two users reach √2 L² where y is large; users with orthogonal features and rewards of the
    bound and 0 are √(L⁴ + 1) apart. With ``printed`` the σ is that of the lemma's statement, which
    is the σ² of its proof.
    """
    square = 1 + bound**2 + 2 * variance * math.log(8 * steps / beta)
    sigma = lemma_2_sigma(alpha, beta, steps=steps, bound=bound, variance=variance, printed=printed)
    tree = ContinualGaussian(
        sigma=sigma,
        factorization=BinaryTree(steps, release_root=True),
        participations=1,
        fixed_steps=True,
        symmetric=True,
    )
    proved = _epsilon(tree, math.sqrt(2) * square, beta)
    attained = _epsilon(tree, math.hypot(square, 1.0), beta)
    return Cost("2", alpha, beta, bound, proved, attained, attained)


def lemma_5_cost(alpha: float, beta: float, bound: float, *, size: int = 28) -> Cost:
    """ε(β) of Lemma 5's joint release, with |y| clipped to the lemma's L.

    L cancels, so that neither B nor m matters. The proof speaks of the worst pair, which exists;
    replacing a user by one with orthogonal features costs less.
    """
    statistics = Lemma5Statistics.of_lemma(size, alpha, beta, bound)
    proved = _epsilon(Gaussian(1.0), statistics.sensitivity, beta)
    orthogonal = _epsilon(Gaussian(1.0), statistics.orthogonal_sensitivity, beta)
    return Cost("5", alpha, beta, bound, proved, orthogonal, proved)


def _epsilon(mechanism: Gaussian | ContinualGaussian, sensitivity: float, beta: float) -> float:
    invocation = Invocation(
        mechanism, sensitivity, PrivacyUnit("user"), ReplaceOne(), TrustModel.JOINT
    )
    proved: float = guarantee(Plan.of(invocation), beta).epsilon
    return proved


def costs(*, steps: int = 1024) -> list[Cost]:
    """The costs at all α, β and B, by lemma."""
    rows = []
    for alpha, beta, bound in itertools.product(ALPHAS, BETAS, BOUNDS):
        rows.append(lemma_2_cost(alpha, beta, bound, steps=steps))
        for name, reading in READINGS.items():
            cost = lemma_2_cost(alpha, beta, bound, steps=steps, **reading)
            rows.append(replace(cost, lemma=f"2, {name}"))
        rows.append(lemma_5_cost(alpha, beta, bound))
    return sorted(rows, key=lambda row: row.lemma)


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit code, 3 for wrong input."""
    about = "What the noise of Dubey 2021 really costs."
    return command(_run, arguments("costs", about, argv, steps=1024, trials=1))


def _run(given: argparse.Namespace) -> str:
    heads = (*("lemma", "α", "β", "B"), *("ε(β) of orthogonal users", "ε(β) proved", "claim of α"))
    rows = [
        (
            row.lemma,
            *(f"{value:g}" for value in (row.alpha, row.beta, row.bound)),
            *(f"{value:.4g}" for value in (row.orthogonal, row.epsilon)),
            row.verdict,
        )
        for row in costs(steps=given.steps)
    ]
    text = (
        "# What the noise of Dubey 2021 costs\n\n"
        f"T = {given.steps}; ρ² = 1 and the σ of the proofs where not said otherwise; ε is proved "
        f"at δ = β.\n\n"
        f"{table(heads, rows)}\n"
    )
    save(given.output, "joint_costs", text)
    return text


if __name__ == "__main__":
    sys.exit(main())
