"""Joint-DP transcript audit of the whole algorithm: what all other users see of one.

Server, privatiser and ledger run as they are. The canary comes in one round; the others have fixed
decision sets and answers, but play what the parameters make them play. The score is the exact
Gaussian likelihood ratio of the parameters of all rounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import AuditPair, AuditRecord, InputError, Ledger, privacy_curve
from dpaudit.auditing import audit_release
from private_bo.gp import Ball, EigenFeatures, SquaredExponential
from private_bo.joint import JointGPUCB, JointServer
from private_bo.joint.local_joint import PackedStatistics
from private_bo.joint.statistics import Sums
from private_bo.joint.subject import DecisionProblem

Floats = NDArray[np.float64]


def small(**fields: Any) -> JointGPUCB:
    """The algorithm with 3 features and 8 rounds, so that thousands of runs take seconds."""
    features = EigenFeatures(SquaredExponential(1.0), Ball(2.0, 2), 3)
    return JointGPUCB(**({"steps": 8, "feature_map": features, "refresh": 0.0} | fields))


@dataclass(frozen=True)
class JointTranscripts:
    """Runs the algorithm with a canary in one round, and records the parameters of all rounds.

    Attributes:
        algorithm: under attack; it must release a matrix, in one stream.
        leaf: round of the canary, from 0.
        seed: of the other users.
    """

    algorithm: JointGPUCB
    leaf: int = 0
    seed: int = 0

    def problem(self, canary: Any) -> DecisionProblem:
        """The users with the canary in place.

        Raises:
            InputError: if the canary is no table of ``arm`` and ``reward``.
        """
        if not isinstance(canary, dict) or set(canary) != {"arm", "reward"}:
            raise InputError("canary must be a table with the fields 'arm' and 'reward'.")
        rng = np.random.default_rng(self.seed)
        steps = self.algorithm.steps
        arms = Ball(2.0, 2).sample(3 * steps, rng).reshape(steps, 3, 2)
        table = rng.integers(2, size=(steps, 3)).astype(np.float64)
        arms[self.leaf] = canary["arm"]
        table[self.leaf] = canary["reward"]
        return DecisionProblem("transcript", arms, table, np.zeros(steps), bernoulli=False)

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """``size`` transcripts, shape (size, rounds, entries of the parameters)."""
        problem = self.problem(data)
        return np.array([self._run(problem, rng) for _ in range(size)])

    def _run(self, problem: DecisionProblem, rng: np.random.Generator) -> Floats:
        transcript = []
        with Ledger(self.algorithm.plan(), rng=rng) as ledger:
            server, privatiser = self.algorithm.parties(ledger)
            for turn in range(problem.rounds):
                server.observe(privatiser.sums())
                arm, features = server.choose(problem.decision_set(turn))
                privatiser.update(features, problem.reward(turn, arm))
                transcript.append(self.pack(privatiser.sums()))
        return np.array(transcript)

    # -- parameters as vectors with isotropic noise ----------------------------------------------

    @cached_property
    def packed(self) -> PackedStatistics:
        """Weighted upper triangle and vector: an isometry of what is released."""
        return self.algorithm.tight_statistics(PackedStatistics)

    def pack(self, sums: Sums | None) -> Floats:
        """The parameters as a vector."""
        if sums is None or sums.matrix is None:
            raise InputError("algorithm releases no matrix; give it a matrix_weight above 0.")
        upper = sums.matrix[np.triu_indices(self.algorithm.size)]
        return np.concatenate([upper * self.packed.scale, sums.vector])

    def unpack(self, row: Floats, rounds: int) -> Sums:
        """The parameters that a server would see."""
        return self.packed.decode(row, rounds, float(self._deviations[rounds - 1]))

    @cached_property
    def _deviations(self) -> Floats:
        return math.sqrt(2) * self.algorithm.periods[0].mechanism.error()


@dataclass(frozen=True)
class TranscriptLikelihoodRatio:
    """Log-likelihood ratio of x against x' for a whole transcript.

    Given the transcript, the other users' arms are known and the same on both sides, since they
    follow from the parameters; so both means are known, and the noise is normal with the covariance
    of the factorisation over time.

    Attributes:
        transcripts: how they were made.
        x: one canary.
        x_prime: the other.
    """

    transcripts: JointTranscripts
    x: Any
    x_prime: Any
    name: str = "log-likelihood ratio of the parameters"
    method: str = "white-box joint-DP transcript likelihood ratio"

    def __call__(self, outputs: Floats) -> Floats:
        """Transcripts (n, rounds, entries) to log ratios, (n,)."""
        return np.array([self._one(row) for row in outputs])

    @cached_property
    def _whitener(self) -> Floats:
        mechanism = self.transcripts.algorithm.periods[0].mechanism
        root = mechanism.factorization.noise_root() * math.sqrt(2) * mechanism.sigma
        return np.asarray(np.linalg.inv(root), dtype=np.float64)

    def _one(self, transcript: Floats) -> float:
        """From the contributions on x; only the canary's own differs on x'."""
        values, other = self._contributions(transcript)
        residual = transcript - np.cumsum(values, axis=0)
        whitened = self._whitener @ residual
        leaf = self.transcripts.leaf
        late = (np.arange(len(transcript)) >= leaf).astype(np.float64)
        shift = np.outer(self._whitener @ late, values[leaf] - other)
        ratio = float((shift * whitened).sum() + np.square(shift).sum() / 2)
        return float(np.float32(ratio))

    @cached_property
    def _problems(self) -> tuple[DecisionProblem, DecisionProblem]:
        return self.transcripts.problem(self.x), self.transcripts.problem(self.x_prime)

    def _contributions(self, transcript: Floats) -> tuple[Floats, Floats]:
        """What every user contributed on x, given what was released before; the canary's on x'."""
        algorithm = self.transcripts.algorithm
        problem, other = self._problems
        server = JointServer(algorithm.feature_map, algorithm.learner(), algorithm.refresh)
        rows, replaced = [], np.empty(0)
        for turn in range(problem.rounds):
            if turn:
                server.observe(self.transcripts.unpack(transcript[turn - 1], turn))
            rows.append(self._played(server, problem, turn))
            if turn == self.transcripts.leaf:
                replaced = self._played(server, other, turn)
        return np.array(rows), replaced

    def _played(self, server: JointServer, problem: DecisionProblem, turn: int) -> Floats:
        arm, phi = server.choose(problem.decision_set(turn))
        return self.transcripts.packed.encode(phi, problem.reward(turn, arm))


def audit(
    algorithm: JointGPUCB | None = None,
    *,
    leaf: int = 0,
    runs: int = 2_000,
    seed: int = 1,
    epsilon: float | None = None,
) -> AuditRecord:
    """Attack the claim with a canary that is replaced by the opposite answer to the same arm.

    Args:
        algorithm: under attack; a small one by default.
        leaf: round of the canary.
        runs: on each side.
        seed: of the experiment.
        epsilon: claim to test at the algorithm's δ; its own by default.
    """
    attacked = algorithm or small()
    transcripts = JointTranscripts(attacked, leaf)
    low, high = attacked.reward_range
    pair = AuditPair({"arm": [0.0, 0.0], "reward": high}, {"arm": [0.0, 0.0], "reward": low})
    claim = attacked.epsilon if epsilon is None else epsilon
    return audit_release(
        transcripts,
        pair,
        epsilon=claim,
        delta=attacked.delta,
        runs=runs,
        seed=seed,
        curve=privacy_curve(attacked.plan()) if epsilon is None else None,
        score=TranscriptLikelihoodRatio(transcripts, pair.x, pair.x_prime),
        learn=False,
    )
