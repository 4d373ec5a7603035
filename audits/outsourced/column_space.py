"""The column-space attack: on which of two data sets' column spaces does a release lie?

Without noise the columns of Z = X̃ M/√r are combinations of the d columns of the centred X. That
subspace of R^n moves with every row, so a release lies on one of the two subspaces and not on the
other, whatever ε was asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from audits.outsourced.neighbours import Floats, Neighbours
from dpaudit import AuditRecord
from dpaudit.auditing.evidence.joint import joint_lower_bound, joint_p_value
from dpaudit.auditing.evidence.power import fewest_runs
from dpaudit.auditing.evidence.types import PairCounts
from private_bo.outsourced import Curator, OutsourcingCurator

METHOD = "column-space attack"
EXACT_METHOD = "column spaces differ (exact)"


def column_space(rows: Floats) -> Floats:
    """Orthonormal basis (n, d) of the columns of the centred rows; thin QR, never n × n."""
    return np.linalg.qr(rows - rows.mean(axis=0))[0]


def residual(release: Floats, basis: Floats) -> float:
    """Frobenius norm of what of a release (n, r) is outside a column space."""
    centred = release - release.mean(axis=0)
    return float(np.linalg.norm(centred - basis @ (basis.T @ centred)))


@dataclass(frozen=True, eq=False)
class ColumnSpaceScore:
    """ln of the residual on x' over the residual on x: positive if x is the better explanation.

    Attributes:
        x: column space of one neighbour, (n, d).
        x_prime: that of the other.
    """

    x: Floats
    x_prime: Floats
    name: str = "ln of the column-space residuals of x' over x"
    method: str = METHOD

    @classmethod
    def of(cls, x: Floats, x_prime: Floats) -> ColumnSpaceScore:
        """For two data sets (n, d)."""
        return cls(column_space(x), column_space(x_prime))

    def __call__(self, outputs: Floats) -> Floats:
        """Releases (k, n, r) to scores (k,)."""
        pairs = [(residual(z, self.x_prime), residual(z, self.x)) for z in outputs]
        return np.array([math.log(max(a, 1e-300) / max(b, 1e-300)) for a, b in pairs])


def disjoint_supports(curator: Curator, neighbours: Neighbours) -> AuditRecord:
    """The exact argument: two column spaces that differ make two disjoint supports.

    For r >= d the columns of Z span the column space of X almost surely, so Z tells the two apart
    with probability 1 if the spaces differ, and δ(ε) = 1 for every ε. They differ if the sine of
    their largest principal angle is beyond rounding (n d times the unit roundoff).
    """
    x, x_prime = (column_space(neighbours.data(moved=moved)) for moved in (False, True))
    sine = float(np.linalg.norm(x_prime - x @ (x.T @ x_prime), 2))
    rounding = 8 * x.size * float(np.finfo(np.float64).eps)
    apart = curator.dimension >= curator.columns and sine > rounding
    return AuditRecord(
        refuted=apart,
        method=EXACT_METHOD,
        claim_epsilon=curator.epsilon,
        delta=curator.delta,
        epsilon_lower=math.inf if apart else 0.0,
        confidence=None,
        runs=0,
        event="the release lies in the column space of x (x to x')",
        seed=None,
        pair=neighbours.to_dict(),
        details={"sine_of_largest_angle": sine, "rounding": rounding, **_facts(curator)},
    )


def column_space_audit(
    curator: OutsourcingCurator,
    neighbours: Neighbours,
    *,
    releases: int = 20,
    alpha: float = 1e-6,
    seed: int = 0,
) -> AuditRecord:
    """Tell ``releases`` releases on each side by the residuals; the event is fixed beforehand.

    The event is "the residual on x is the smaller one". No pilot is needed, and one exact joint
    test at level ``alpha`` gives verdict and bound.

    Args:
        curator: what is attacked, at its own (ε, δ).
        neighbours: fixed before the releases are drawn.
        releases: on each side.
        alpha: error rate of the verdict.
        seed: of the releases.
    """
    data = [neighbours.data(moved=moved) for moved in (False, True)]
    score = ColumnSpaceScore.of(*data)
    sides = [
        _residuals(curator, rows, score, releases, (seed, side)) for side, rows in enumerate(data)
    ]
    hits = [sum(own < other for own, other in side) for side in sides]
    counts = PairCounts(hits[0], releases, hits[1], releases)
    epsilon, delta = curator.epsilon, curator.delta
    p_value = joint_p_value(counts, epsilon, delta, nuisance_error=alpha / 1000)
    lower = joint_lower_bound(counts, delta, 1 - alpha)
    refuted = lower > epsilon
    needed = fewest_runs(epsilon, delta, alpha)
    return AuditRecord(
        refuted=refuted,
        method=METHOD,
        claim_epsilon=epsilon,
        delta=delta,
        epsilon_lower=lower,
        confidence=1 - alpha,
        runs=releases,
        event="residual on x < residual on x' (x to x')",
        seed=seed,
        pair=neighbours.to_dict(),
        power=""
        if refuted
        else f"One event on one pair needs at least {needed} releases a side to refute this claim "
        f"at error rate {alpha:g}, even if it never errs.",
        details={
            "counts": counts.to_dict(),
            "p_value": p_value,
            "fewest_releases_a_side": needed,
            "residuals_on_x": {"x": _summary(sides[0], 0), "x_prime": _summary(sides[0], 1)},
            "residuals_on_x_prime": {"x": _summary(sides[1], 0), "x_prime": _summary(sides[1], 1)},
            **_facts(curator),
        },
    )


def _residuals(
    curator: OutsourcingCurator,
    rows: Floats,
    score: ColumnSpaceScore,
    releases: int,
    seed: tuple[int, int],
) -> list[tuple[float, float]]:
    """Residuals on x and on x' of each release of these rows, drawn one at a time."""
    rng = np.random.default_rng(seed)
    return [
        (residual(release, score.x), residual(release, score.x_prime))
        for release in curator.releases(rows, releases, rng)
    ]


def _summary(side: list[tuple[float, float]], which: int) -> dict[str, float]:
    """Smallest and largest residual."""
    values = [pair[which] for pair in side]
    return {"least": min(values), "largest": max(values)}


def _facts(curator: OutsourcingCurator) -> dict[str, Any]:
    """What a replay needs of the curator."""
    return {
        "curator": type(curator).__name__,
        "dimension": curator.dimension,
        "columns": curator.columns,
    }
