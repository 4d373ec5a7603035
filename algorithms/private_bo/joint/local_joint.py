"""Local joint differential privacy: every client adds its own noise (Dubey 2021, Algorithm 3).

The print numbers no lines: here every printed line counts, ``SERVER:`` being line 1.

>>> from dpaudit.ledger import Ledger
>>> algorithm = LocalJointGPUCB(epsilon=10.0, delta=0.1, steps=32)
>>> rng = np.random.default_rng(0)
>>> problem = algorithm.load("bump", rng)
>>> with Ledger(algorithm.plan(), rng=rng) as ledger:
...     result = algorithm.run(problem, ledger, rng)
>>> len(ledger), result.summary["users"]
(32, 32)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.base.errors import InputError
from dpaudit.certificate import Finding, Severity
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import Gaussian
from dpaudit.plan import Invocation, Plan, PrivacyUnit, ReplaceOne, TrustModel
from dpaudit.project import AuditPair, RunResult
from private_bo.joint.local_joint_parties import Client, LocalServer, Parameters, Report
from private_bo.joint.local_joint_statistics import Lemma5Statistics, PackedStatistics
from private_bo.joint.noise import Noise, lemma_6_shift
from private_bo.joint.parties import JointServer, RewardGate
from private_bo.joint.subject import PrivateApproximateGPUCB

__all__ = ["Client", "LocalJointGPUCB", "LocalServer", "Parameters", "Report"]

_MARGIN = 1e-9


@dataclass(frozen=True)
class LocalJointGPUCB(PrivateApproximateGPUCB):
    """Algorithm 3: fields as in the base class.

    With ``noise="paper"`` clients add the noise of Lemma 5, and the server shifts by Lemma 6; the
    reward is then clipped to the lemma's bound L, and ``reward_range`` is not used.
    """

    paper_place: ClassVar[str] = "Lemma 5 and Algorithm 3"
    lemma_finding: ClassVar[Finding] = Finding(
        "sensitivity-miscounted",
        Severity.WARNING,
        "Lemma 5 takes the sensitivities of φφᵀ and yφ for 1 and L; replacing a user moves "
        "them by up to √2 and 2L.",
        "Set noise to tight.",
        "statistics",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise is Noise.PRINTED:
            raise InputError("noise is printed; Lemma 5 has one reading alone, so set paper.")

    # -- privacy ---------------------------------------------------------------------------------

    @cached_property
    def statistics(self) -> PackedStatistics | Lemma5Statistics:
        """What a client sends: packed statistics, or those of Lemma 5 in its units."""
        if self.noise is Noise.PAPER:
            return Lemma5Statistics.of_lemma(self.size, self.epsilon, self.delta, self.norm_bound)
        return self.tight_statistics(PackedStatistics)

    @cached_property
    def mechanism(self) -> Gaussian:
        """The noise of a client: calibrated, or of deviation 1 in the units of Lemma 5."""
        if self.noise is Noise.PAPER:
            return Gaussian(1.0)
        found = Gaussian.calibrated(
            epsilon=self.epsilon, delta=self.delta, sensitivity=self.statistics.sensitivity
        )
        return Gaussian(found.sigma * (1 + _MARGIN))

    def _paper_shift(self) -> float | None:
        assert isinstance(self.statistics, Lemma5Statistics)
        return lemma_6_shift(
            self.statistics.sigma_x, steps=self.steps, size=self.size, confidence=self.confidence
        )

    def plan(self) -> Plan:
        """One release of each client; different clients are different users."""
        return Plan.of(
            Invocation(
                mechanism=self.mechanism,
                sensitivity=self.statistics.sensitivity,
                unit=PrivacyUnit("user"),
                relation=ReplaceOne(),
                trust=TrustModel.LOCAL,
                count=1,
                total=self.steps,
                at="statistics",
            )
        )

    def audit_pairs(self) -> tuple[AuditPair, ...]:
        """Those of the base class, and for Lemma 5 the worst pair of all."""
        statistics = self.statistics
        if not isinstance(statistics, Lemma5Statistics):
            return super().audit_pairs()
        half, bound = math.acos(statistics.worst_cosine) / 2, statistics.reward_bound
        # Mirrored about a diagonal, so that the outer products differ on the diagonal alone.
        x = [math.cos(math.pi / 4 - half), math.sin(math.pi / 4 - half)]
        pair = AuditPair(
            {"features": x, "reward": bound},
            {"features": x[::-1], "reward": -bound},
            "the pair of largest distance",
        )
        return (pair, *super().audit_pairs())

    def audit_release(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """What a client with few features sends.

        Args:
            data: ``{"features": [...], "reward": y}``; features that are left out are 0, and their
                entries are noise alone.
            size: number of independent transcripts.
            rng: source of the noise.

        Returns:
            Shape (size, k(k+1)/2 + k) for k features, or (size, k) without a matrix.

        Raises:
            InputError: if the data are malformed.
        """
        return self.mechanism.release_many(self.contribution(data), size, rng)

    def statistic(self, releases: Sequence[Any]) -> NDArray[Any]:
        """What the first client sends."""
        return np.asarray(releases[0])

    def gate(self) -> RewardGate:
        """As in the base class, and ±L under Lemma 5."""
        if isinstance(self.statistics, Lemma5Statistics):
            bound = self.statistics.reward_bound
            return RewardGate((-bound, bound), self.out_of_range)
        return super().gate()

    # -- run -------------------------------------------------------------------------------------

    def server(self) -> LocalServer:
        """The server of Algorithm 3."""
        chooser = JointServer(self.feature_map, self.learner(), self.refresh)
        return LocalServer(self.statistics, self.mechanism.sigma, self.steps, chooser)

    def client(self, name: str, ledger: Ledger, gate: RewardGate | None = None) -> Client:
        """The client of one user, with a gate of its own unless one is given."""
        return Client(name, self.statistics, self.mechanism, ledger, gate or self.gate())

    def run(self, data: Any, ledger: Ledger, rng: np.random.Generator) -> RunResult:
        """Play ``steps`` rounds: the problem must have that many, since each client is declared.

        Args:
            data: a :class:`~private_bo.joint.problems.DecisionProblem`.
            ledger: a ledger of :meth:`plan`.
            rng: not used: server and clients are deterministic but for their noise.

        Raises:
            InputError: if ``data`` is no such problem, is too long, or holds invalid values.
        """
        problem = self._problem(data)
        server, gate = self.server(), self.gate()  # line 2
        choices: list[int] = []
        for turn in range(problem.rounds):  # line 3
            client = self.client(f"user {turn + 1}", ledger, gate)
            parameters = server.parameters()  # line 4
            report = client.answer(  # lines 7-17
                parameters, problem.decision_set(turn), partial(problem.reward, turn)
            )
            server.receive(report)  # line 5
            assert client.arm is not None
            choices.append(client.arm)
        return self._result(problem, choices)
