"""Attacks on the curators: by column space, by canary rows, at the branch, and by the engine alone.

Without noise the columns of Z = X̃ M/√r are combinations of the d columns of the centred X. That
subspace of R^n moves with every row, so a release lies on one of two neighbours' subspaces and not
on the other, whatever ε was asked for. Who knows d + 1 rows knows the affine map from the release
back to the data, and with it all other rows: one release answers as many yes-no questions as there
are rows left, and a few refute a large ε, for which one question on one pair would take hundreds.
At σ_min = ω the paper's curator switches branch and its release jumps; that attack looks at nothing
but the size of the release, so that it is blind to the column space. The engine is given no score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from audits.outsourced.neighbours import Floats, Neighbours, inward, problem_rows
from dpaudit import AuditPair, AuditRecord
from dpaudit.auditing import audit_release
from dpaudit.auditing.evidence.events import PairCounts
from dpaudit.auditing.evidence.one_run import one_run_p_value
from dpaudit.auditing.evidence.two_counts import fewest_runs, joint_lower_bound, joint_p_value
from dpaudit.base.errors import InputError
from private_bo import outsourced
from private_bo.outsourced import CertifiedCurator, Curator, OutsourcingCurator, RowNoise
from private_bo.outsourced.problems import grid_rows

COLUMN_SPACE = "column-space attack"
COLUMN_SPACES_DIFFER = "column spaces differ (exact)"


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
    method: str = COLUMN_SPACE

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
    return _record(
        curator,
        math.inf if apart else 0.0,
        {"sine_of_largest_angle": sine, "rounding": rounding},
        method=COLUMN_SPACES_DIFFER,
        confidence=None,
        runs=0,
        event="the release lies in the column space of x (x to x')",
        seed=None,
        pair=neighbours.to_dict(),
    )


def _record(
    curator: OutsourcingCurator, lower: float, details: dict[str, Any], **fields: Any
) -> AuditRecord:
    """Of a lower bound on ε at the claim of a curator, with what a replay needs of it."""
    facts = {"dimension": curator.dimension, "columns": curator.columns}
    return AuditRecord(
        refuted=lower > curator.epsilon,
        claim_epsilon=curator.epsilon,
        delta=curator.delta,
        epsilon_lower=lower,
        details={**details, "curator": type(curator).__name__, **facts},
        **fields,
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
    needed = fewest_runs(epsilon, delta, alpha)
    power = (
        f"One event on one pair needs at least {needed} releases a side to refute this claim at "
        f"error rate {alpha:g}, even if it never errs."
    )
    x, x_prime = ({"x": _summary(side, 0), "x_prime": _summary(side, 1)} for side in sides)
    details = {"counts": counts.to_dict(), "p_value": p_value, "fewest_releases_a_side": needed}
    return _record(
        curator,
        lower,
        {**details, "residuals_on_x": x, "residuals_on_x_prime": x_prime},
        method=COLUMN_SPACE,
        confidence=1 - alpha,
        runs=releases,
        event="residual on x < residual on x' (x to x')",
        seed=seed,
        pair=neighbours.to_dict(),
        power="" if lower > epsilon else power,
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


CANARIES = "reconstruction of canary rows"

_STEP = 0.005  # of the grid of ε
_RANK = 1e-9


def reconstruct_rows(release: Floats, known: Floats, known_rows: Floats) -> Floats:
    """All rows (n, d), from a release (n, r) and the rows ``known`` at positions ``known_rows``.

    Least squares for the affine map from released to private rows.
    """
    lifted = np.column_stack([release, np.full(len(release), np.abs(release).max())])
    back = np.linalg.lstsq(lifted[known_rows], known, rcond=_RANK)[0]
    return np.asarray(lifted @ back)


@dataclass(frozen=True)
class _Canaries:
    """Rows that move by 1, each with probability 1/2, and what is known of the others."""

    base: Floats
    steps: Floats
    chosen: Floats
    others: Floats

    @classmethod
    def among(cls, rows: Floats, number: int, rng: np.random.Generator) -> _Canaries:
        order = rng.permutation(len(rows))
        return cls(rows, inward(rows), np.sort(order[:number]), np.sort(order[number:]))

    def correct(self, curator: OutsourcingCurator, rng: np.random.Generator) -> tuple[int, float]:
        """One release: right guesses, and the largest error of a reconstructed canary."""
        secret = rng.random(len(self.chosen)) < 0.5
        data = self.base.copy()
        data[self.chosen] += self.steps[self.chosen] * secret[:, np.newaxis]
        (release,) = curator.releases(data, 1, rng)
        found = reconstruct_rows(release, self.base[self.others], self.others)[self.chosen]
        shift = found - self.base[self.chosen]
        guess = np.einsum("ij,ij->i", shift, self.steps[self.chosen]) > 0.5
        return int((guess == secret).sum()), float(np.abs(found - data[self.chosen]).max())


def canary_audit(
    curator: OutsourcingCurator,
    problem: str,
    *,
    canaries: int = 200,
    releases: int = 4,
    alpha: float = 1e-6,
    seed: int = 0,
) -> AuditRecord:
    """Guess all canaries in each of a few releases; the event is fixed beforehand.

    Every canary is moved by 1 (to a legal place) with probability 1/2, independently; data sets
    that differ in one of these bits are neighbours. So under (ε, δ)-DP the chance of v right
    guesses in one release is bounded by Steinke, Nasr and Jagielski 2023, Theorem 5.2. The event
    is "every guess is right in every release"; releases are independent, so its chance is at most
    the product. (One release cannot give a p-value far below δ at large ε: with probability δ a
    private algorithm may give everything away.)

    Args:
        curator: what is attacked, at its own (ε, δ).
        problem: name of the data set.
        canaries: rows that may move.
        releases: independent releases.
        alpha: error rate of the verdict.
        seed: of canaries, bits and releases.

    Raises:
        InputError: if fewer than d + 1 rows would be left to be known.
    """
    rows = problem_rows(problem)
    if canaries > len(rows) - curator.columns - 1:
        raise InputError(
            f"canaries is {canaries}; it must leave {curator.columns + 1} of {len(rows)} rows."
        )
    rng = np.random.default_rng(seed)
    chosen = _Canaries.among(rows, canaries, rng)
    results = [chosen.correct(curator, rng) for _ in range(releases)]
    correct = [right for right, _ in results]
    every = min(correct) == canaries
    epsilon, delta = curator.epsilon, curator.delta
    lower = _lower_bound(canaries, releases, delta, alpha) if every else 0.0
    chance = _chance(canaries, releases, epsilon, delta) if every else 1.0
    error = max(error for _, error in results)
    return _record(
        curator,
        lower,
        {"correct": correct, "largest_error_of_a_row": error, "p_value": chance},
        method=CANARIES,
        confidence=1 - alpha,
        runs=releases,
        event="every canary is guessed right in every release",
        seed=seed,
        pair={"problem": problem, "canaries": canaries, "move": "1 towards the origin"},
        power="" if every else "Any release from which all canaries can be read would be refuted.",
    )


def _chance(canaries: int, releases: int, epsilon: float, delta: float) -> float:
    """Bound on the chance of the event under (ε, δ)."""
    return one_run_p_value(canaries, canaries, canaries, epsilon, delta) ** releases


def _lower_bound(canaries: int, releases: int, delta: float, alpha: float) -> float:
    """The last ε of a fixed grid that the event rejects, walking up from 0."""
    steps = 0
    while _chance(canaries, releases, steps * _STEP, delta) <= alpha:
        steps += 1
    return max(0, steps - 1) * _STEP if steps else math.nan


BRANCH = "size of the release at the branch"
ROWS = 8


@dataclass(frozen=True)
class SizeScore:
    """Frobenius norm of a release."""

    name: str = "Frobenius norm of the release"
    method: str = BRANCH

    def __call__(self, outputs: Floats) -> Floats:
        """Releases (k, n, r) to norms (k,)."""
        norms: Floats = np.linalg.norm(outputs, axis=(1, 2))
        return norms


def boundary_pair(omega: float, *, offset: float = 0.0) -> AuditPair:
    """Eight rows on a circle with σ_min just above ω, and the same with one row 1 further inwards.

    Args:
        omega: ω of the curator.
        offset: added to the radius; 2 keeps both data sets in one branch, as a control.
    """
    # A regular polygon of n rows on radius R is centred, with both singular values R sqrt(n/2).
    radius = omega * math.sqrt(2 / ROWS) * (1 + 1e-9) + offset
    angles = 2 * math.pi * np.arange(ROWS) / ROWS
    rows = radius * np.column_stack([np.cos(angles), np.sin(angles)])
    moved = rows.copy()
    moved[0] *= 1 - 1 / radius
    where = "on both sides of the branch" if offset == 0 else "in the same branch"
    return AuditPair(rows.tolist(), moved.tolist(), f"{where} at ω = {omega:.6g}")


def branch_audit(
    curator: outsourced.Curator,
    *,
    offset: float = 0.0,
    runs: int = 5000,
    alpha: float = 1e-6,
    seed: int = 0,
) -> AuditRecord:
    """Attack the branch at the claimed (ε, δ) with the size of the release alone.

    Args:
        curator: of two columns, and a norm bound that admits rows of norm ω.
        offset: see :func:`boundary_pair`.
        runs: on each side.
        alpha: error rate of the verdict.
        seed: of the experiment.
    """
    return attack(
        curator,
        boundary_pair(curator.omega, offset=offset),
        runs=runs,
        confidence=1 - alpha,
        seed=seed,
        score=SizeScore(),
        method=BRANCH,
    )


def lattice_pair(per_axis: int = 10) -> AuditPair:
    """The synthetic grid in small: its corner moves by 1 towards the origin."""
    rows = grid_rows(per_axis)
    moved = rows.copy()
    moved[0] += inward(rows[:1])[0]
    return AuditPair(rows.tolist(), moved.tolist(), f"corner of a {per_axis} × {per_axis} grid")


def attack(subject: Any, pair: AuditPair, **how: Any) -> AuditRecord:
    """The engine's attack on a pair at the (ε, δ) of a subject, with no score if none is given."""
    claim = {"epsilon": subject.epsilon, "delta": subject.delta}
    return audit_release(subject.audit_release, pair, **claim, **how)


def pairs(curator: OutsourcingCurator) -> tuple[AuditPair, ...]:
    """The curator's own pairs, and the corner of a small grid where it has two columns."""
    lattice = (lattice_pair(),) if curator.columns == 2 else ()
    return (*curator.audit_pairs(), *lattice)


def curators(epsilon: float) -> tuple[OutsourcingCurator, ...]:
    """The paper's curator, and certified ones with either noise."""
    noises = (RowNoise.LAPLACE, RowNoise.GAUSSIAN)
    certified = (CertifiedCurator(epsilon, noise=noise) for noise in noises)
    return (Curator(epsilon), *certified)
