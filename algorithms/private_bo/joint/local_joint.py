"""Local joint differential privacy: every client adds its own noise (Dubey 2021, Algorithm 3).

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
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.certificate import Finding, Severity
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import Gaussian
from dpaudit.plan import Invocation, Plan, PrivacyUnit, ReplaceOne, TrustModel
from dpaudit.project import AuditPair, RunResult
from private_bo.joint.local_joint_parties import Client, LocalServer, Parameters, Report
from private_bo.joint.local_joint_statistics import (
    Lemma5Statistics,
    LocalStatistics,
    PackedStatistics,
)
from private_bo.joint.noise import Noise
from private_bo.joint.parties import JointServer, RewardGate
from private_bo.joint.statistics import CentredStatistics
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

    # -- privacy ---------------------------------------------------------------------------------

    @cached_property
    def local_statistics(self) -> LocalStatistics:
        """What a client sends."""
        if self.noise is Noise.PAPER:
            return Lemma5Statistics(self.size, self.epsilon, self.delta, self.norm_bound)
        inner = self.statistics
        assert isinstance(inner, CentredStatistics)
        return PackedStatistics(inner)

    @cached_property
    def mechanism(self) -> Gaussian:
        """The noise of a client."""
        if self.noise is Noise.PAPER:
            return Gaussian(1.0)
        found = Gaussian.calibrated(
            epsilon=self.epsilon,
            delta=self.delta,
            sensitivity=self.local_statistics.sensitivity,
        )
        return Gaussian(found.sigma * (1 + _MARGIN))

    def plan(self) -> Plan:
        """One release of each client; different clients are different users."""
        return Plan.of(
            Invocation(
                mechanism=self.mechanism,
                sensitivity=self.local_statistics.sensitivity,
                unit=PrivacyUnit("user"),
                relation=ReplaceOne(),
                trust=TrustModel.LOCAL,
                count=1,
                total=self.steps,
                at="statistics",
            )
        )

    def findings(self) -> tuple[Finding, ...]:
        """The lemma's mistake, where its noise is used."""
        if self.noise is not Noise.PAPER:
            return super().findings()
        wrong = Finding(
            "sensitivity-miscounted",
            Severity.WARNING,
            "Lemma 5 takes the sensitivities of φφᵀ and yφ for 1 and L; replacing a user moves "
            "them by up to √2 and 2L.",
            "Set noise to tight.",
            "statistics",
        )
        return (wrong, *super().findings())

    def audit_pairs(self) -> tuple[AuditPair, ...]:
        """Those of the base class, and for Lemma 5 the worst pair of all."""
        if not isinstance(self.local_statistics, Lemma5Statistics):
            return super().audit_pairs()
        statistics = self.local_statistics
        sigma_x, bound = statistics.shift_deviation, statistics.reward_bound
        k = min(1.0, 0.25 * (statistics.squared_distance(0) - 2 / sigma_x**2) * sigma_x**2)
        half = math.acos(k) / 2
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
        phi, reward = self._canary(data)
        value = self._narrow(len(phi)).encode(phi, reward)
        return self.mechanism.release_many(value, size, rng)

    def _gate(self) -> RewardGate:
        if isinstance(self.local_statistics, Lemma5Statistics):
            bound = self.local_statistics.reward_bound
            return RewardGate((-bound, bound), self.out_of_range)
        return super()._gate()

    def _narrow(self, size: int) -> LocalStatistics:
        """The statistics of the first features alone, in the same units."""
        full = self.local_statistics
        if isinstance(full, PackedStatistics):
            return PackedStatistics(replace(full.inner, size=size))
        assert isinstance(full, Lemma5Statistics)
        return _Narrow(size, full)

    def _paper_shift(self) -> float | None:
        """None: the norm of the noise grows with the rounds, and the learner knows it."""
        return None

    # -- run -------------------------------------------------------------------------------------

    def server(self) -> LocalServer:
        """The server of the protocol."""
        chooser = JointServer(self.feature_map, self.learner(), self.refresh)
        return LocalServer(self.local_statistics, self.mechanism.sigma, self.steps, chooser)

    def client(self, name: str, ledger: Ledger, gate: RewardGate | None = None) -> Client:
        """The client of one user."""
        return Client(name, self.local_statistics, self.mechanism, ledger, gate or self._gate())

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
        server, gate = self.server(), self._gate()
        choices: list[int] = []
        for turn in range(problem.rounds):
            client = self.client(f"user {turn + 1}", ledger, gate)
            report = client.answer(
                server.parameters(),
                problem.decision_set(turn),
                partial(problem.reward, turn),
            )
            server.receive(report)
            assert client.arm is not None
            choices.append(client.arm)
        return self._result(problem, choices)


@dataclass(frozen=True)
class _Narrow(LocalStatistics):
    """The first features of Lemma 5's statistics, in the units of the whole."""

    size: int
    whole: Lemma5Statistics

    @property
    def length(self) -> int:
        return self.size * (self.size + 1) // 2 + self.size

    def encode(self, phi: NDArray[Any], reward: float) -> NDArray[Any]:
        padded = np.zeros(self.whole.size)
        padded[: self.size] = phi
        full = self.whole.encode(padded, reward)
        columns = np.triu_indices(self.whole.size)[1]
        kept = np.concatenate([columns < self.size, np.arange(self.whole.size) < self.size])
        narrow: NDArray[Any] = full[kept]
        return narrow

    @property
    def sensitivity(self) -> float:
        return self.whole.sensitivity

    def decode(self, total: NDArray[Any], rounds: int, deviation: float) -> Any:
        return self.whole.decode(total, rounds, deviation)
