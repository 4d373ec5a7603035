"""Many canaries in one release: solve for the rows, and read off which of them have moved.

Who knows d + 1 rows knows the affine map from the release back to the data, and with it all other
rows. So one release answers as many yes-no questions as there are rows left, and a few releases
refute a large ε, for which one question on one pair would take hundreds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from audits.outsourced.neighbours import Floats, inward, problem_rows
from dpaudit import AuditRecord
from dpaudit.auditing.evidence.one_run import one_run_p_value
from dpaudit.base.errors import InputError
from private_bo.outsourced import OutsourcingCurator

METHOD = "reconstruction of canary rows"

_STEP = 0.005  # of the grid of ε
_RANK = 1e-9


def reconstructed(release: Floats, known: Floats, known_rows: Floats) -> Floats:
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
        found = reconstructed(release, self.base[self.others], self.others)[self.chosen]
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
    return AuditRecord(
        refuted=lower > epsilon,
        method=METHOD,
        claim_epsilon=epsilon,
        delta=delta,
        epsilon_lower=lower,
        confidence=1 - alpha,
        runs=releases,
        event="every canary is guessed right in every release",
        seed=seed,
        pair={"problem": problem, "canaries": canaries, "move": "1 towards the origin"},
        power="" if every else "Any release from which all canaries can be read would be refuted.",
        details={
            "correct": correct,
            "largest_error_of_a_row": max(error for _, error in results),
            "p_value": _chance(canaries, releases, epsilon, delta) if every else 1.0,
            "curator": type(curator).__name__,
            "dimension": curator.dimension,
            "columns": curator.columns,
        },
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
