"""Local joint differential privacy: every client adds its own noise (Dubey 2021, Algorithm 3).

The print numbers no lines: here every printed line counts, ``SERVER:`` being line 1. First what a
client sends, a vector whose noise is isotropic; then the parties, of which the server sees noisy
statistics alone; then the algorithm.

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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import Gaussian
from dpaudit.plan import Invocation, TrustModel
from dpaudit.project import AuditPair
from private_bo.gp.types import Array
from private_bo.joint.parties import JointServer, RewardGate, unit_features
from private_bo.joint.statistics import (
    CentredStatistics,
    Encoding,
    Noise,
    Sums,
    lemma_5_sigmas,
    lemma_6_shift,
)
from private_bo.joint.subject import DecisionProblem, PrivateApproximateGPUCB
from private_bo.redacted_errors import redact


@dataclass(frozen=True)
class PackedStatistics(CentredStatistics):
    """The same as a vector: the upper triangle of w φφᵀ, times √2 off the diagonal, and v φ.

    It is an isometry of the matrix form, so that the sensitivity is the same.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """(m(m+1)/2 + m,), or (m,) where no matrix is released."""
        return _packed_shape(self.size) if self.has_matrix else (self.size,)

    @cached_property
    def scale(self) -> Array:
        """Weight of each entry of the triangle: w, times √2 off the diagonal, (m(m+1)/2,)."""
        rows, columns = np.triu_indices(self.size)
        return self.matrix_weight * np.where(rows == columns, 1.0, math.sqrt(2))

    def _joined(self, phi: Array, column: Array) -> Array:
        return np.concatenate([triangle(phi) * self.scale, column])

    def _parted(self, total: Array) -> tuple[Array, Array]:
        packed = total[: -self.size]
        return total[-self.size :], symmetric(packed / self.scale, self.size)


@dataclass(frozen=True)
class Lemma5Statistics(Encoding):
    """φφᵀ with i.i.d. lower triangle and yφ, in units of the deviations of Lemma 5.

    So the release is one Gaussian mechanism with σ = 1. For features of cosine k and y' = −y = ±L,
    the squared distance is at most 2(1 − k²)/σ_X² + 2L²(1 + k)/σ_u², reached for features whose
    outer products differ on the diagonal alone; its largest value is at k = L²σ_X²/2σ_u² or at 1.

    Attributes:
        sigma_x: σ_X, deviation of the noise of an entry of φφᵀ.
        sigma_u: σ_u, of an entry of yφ.
        reward_bound: L, to which rewards are clipped.
    """

    sigma_x: float
    sigma_u: float
    reward_bound: float

    @classmethod
    def of_lemma(cls, size: int, epsilon: float, delta: float, norm_bound: float) -> Self:
        """With the deviations of the lemma for m features, (α, β) and |f| <= B."""
        return cls(size, *lemma_5_sigmas(epsilon, delta, bound=norm_bound, size=size))

    @property
    def shape(self) -> tuple[int, ...]:
        """(m(m+1)/2 + m,)."""
        return _packed_shape(self.size)

    def encode(self, phi: Array, reward: float) -> Array:
        """The triangle over σ_X, then the vector over σ_u."""
        clipped = min(self.reward_bound, max(-self.reward_bound, reward))
        return np.concatenate([triangle(phi) / self.sigma_x, clipped / self.sigma_u * phi])

    def squared_distance(self, k: float) -> float:
        """The largest squared distance for features of cosine k."""
        matrix = 2 * (1 - k * k) / self.sigma_x**2
        return matrix + 2 * self.reward_bound**2 * (1 + abs(k)) / self.sigma_u**2

    @property
    def worst_cosine(self) -> float:
        """The cosine k of the features of two users who are farthest apart."""
        return min(1.0, (self.reward_bound * self.sigma_x / self.sigma_u) ** 2 / 2)

    @property
    def sensitivity(self) -> float:
        """The root of the largest squared distance."""
        return math.sqrt(self.squared_distance(self.worst_cosine)) * (1 + 1e-14)

    @property
    def orthogonal_sensitivity(self) -> float:
        """The distance of users with orthogonal features, which is not the largest."""
        return math.sqrt(self.squared_distance(0.0))

    def decode(self, total: Array, rounds: int, deviation: float) -> Sums:
        """The sums in the paper's units, with deviations σ_X and σ_u of each user's noise."""
        matrix = symmetric(total[: -self.size] * self.sigma_x, self.size)
        vector = total[-self.size :] * self.sigma_u
        return Sums(rounds, vector, matrix, deviation * self.sigma_u, deviation * self.sigma_x)


def _packed_shape(size: int) -> tuple[int, ...]:
    return (size * (size + 1) // 2 + size,)


def triangle(phi: Array) -> Array:
    """The upper triangle of φφᵀ, (m(m+1)/2,), row by row."""
    rows, columns = np.triu_indices(len(phi))
    return np.asarray(phi[rows] * phi[columns])


def symmetric(upper: Array, size: int) -> Array:
    """The symmetric matrix (m, m) with that upper triangle."""
    rows, columns = np.triu_indices(size)
    matrix = np.empty((size, size))
    matrix[rows, columns] = matrix[columns, rows] = upper
    return matrix


@dataclass(frozen=True, eq=False)
class Parameters:
    """What the server sends to a client: post-processing of what it received.

    Attributes:
        turn: the round, from 0.
        server: the rule that chooses an arm; it holds nothing private.
    """

    turn: int
    server: JointServer


@dataclass(frozen=True, eq=False)
class Report:
    """What a client sends back.

    Attributes:
        turn: the round that it answers.
        client: its name.
        statistics: its contribution, with noise.
    """

    turn: int
    client: str
    statistics: Array


@dataclass(eq=False)
class Client:
    """One user: plays an arm of the own decision set and adds noise to what is sent.

    Attributes:
        name: charged in the ledger.
        statistics: what is sent.
        mechanism: its noise.
        ledger: where the release is charged.
        gate: keeps the reward in range.
        arm: the arm that was played, known to the user alone; None before.
    """

    name: str
    statistics: Encoding
    mechanism: Gaussian
    ledger: Ledger
    gate: RewardGate
    arm: int | None = field(default=None, init=False)

    def answer(
        self, parameters: Parameters, decision_set: Array, play: Callable[[int], float]
    ) -> Report:
        """Choose, play, and report with noise (lines 9 to 17).

        Args:
            parameters: from the server.
            decision_set: the user's own, (n, d).
            play: the reward of an arm.

        Raises:
            InputError: if the client has answered before, or the decision set, the features or the
                reward are wrong, or ``play`` raises: its words are not told. No noise is drawn
                then.
        """
        if self.arm is not None:
            raise InputError(f"client {self.name!r} has answered; each answers once.")
        server = validate.instance(Parameters, parameters=parameters).server
        arm, phi = server.choose(validate.private(decision_set))  # lines 9-13
        features = unit_features(phi, self.statistics.size)
        reward = self.gate(redact(play)(arm))  # line 14
        value = self.statistics.encode(features, reward)
        noisy = self.ledger.release(self.mechanism, value, unit=self.name, at="statistics")  # 15
        self.arm = arm
        return Report(parameters.turn, self.name, np.asarray(noisy, dtype=np.float64))  # 16-17


@dataclass(eq=False)
class LocalServer:
    """Adds up reports and sends parameters.

    Attributes:
        statistics: how reports are read.
        deviation: of a report's noise, per unit of norm.
        steps: T.
        server: chooses arms from sums.
        rounds: how many reports are counted.
    """

    statistics: Encoding
    deviation: float
    steps: int
    server: JointServer
    rounds: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._total = np.zeros(self.statistics.shape)  # line 2
        self._clients: set[str] = set()

    def parameters(self) -> Parameters:
        """What the client of the next round receives (line 4).

        Raises:
            InputError: if all rounds are over.
        """
        if self.rounds >= self.steps:
            raise InputError(
                f"steps is {self.steps} and all rounds have been played; declare more beforehand."
            )
        if self.server.due(self.rounds):
            self.server.observe(self.sums())
        return Parameters(self.rounds, self.server)

    def receive(self, report: Report) -> None:
        """Count a report (line 5).

        Raises:
            InputError: if it answers another round than the current one, comes from a client that
                was counted, or has another shape. Nothing is counted then.
        """
        if report.client in self._clients:
            raise InputError(f"client {report.client!r} has been counted; each answers once.")
        if report.turn != self.rounds:
            raise InputError(
                f"report of {report.client!r} answers round {report.turn + 1}; round "
                f"{self.rounds + 1} is expected."
            )
        if report.statistics.shape != self._total.shape:
            raise InputError(
                f"statistics of {report.client!r} have shape {report.statistics.shape}; they must "
                f"be {self._total.shape}."
            )
        self._total += report.statistics
        self._clients.add(report.client)
        self.rounds += 1

    def sums(self) -> Sums | None:
        """The current parameters; None before the first report."""
        if self.rounds == 0:
            return None
        deviation = self.deviation * math.sqrt(self.rounds)
        return self.statistics.decode(self._total, self.rounds, deviation)


_MARGIN = 1e-9


@dataclass(frozen=True)
class LocalJointGPUCB(PrivateApproximateGPUCB):
    """Algorithm 3: fields as in the base class.

    With ``noise="paper"`` clients add the noise of Lemma 5, and the server shifts by Lemma 6; the
    reward is then clipped to the lemma's bound L, and ``reward_range`` is not used.
    """

    trust: ClassVar[TrustModel] = TrustModel.LOCAL
    source: ClassVar[str] = "Dubey 2021, Lemma 5 and Algorithm 3"
    lemma_finding: ClassVar[tuple[str, str]] = ("sensitivity-miscounted", "statistics")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise is Noise.PRINTED:
            raise InputError(
                "noise is printed, but Lemma 5 has only one reading; set noise to paper."
            )

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

    def invocations(self) -> Iterator[Invocation]:
        """One release of each client; different clients are different users."""
        yield self.invocation(
            self.mechanism, self.statistics.sensitivity, count=1, total=self.steps, at="statistics"
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
        """What a client with few features sends, of ``{"features": [...], "reward": y}``.

        Features that are left out are 0, and their entries are noise alone.

        Returns:
            Shape (size, k(k+1)/2 + k) for k features, or (size, k) without a matrix.

        Raises:
            InputError: if the data are malformed.
        """
        return self.mechanism.release_many(self.contribution(data), size, rng)

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

    def search(self, problem: DecisionProblem, ledger: Ledger, rng: np.random.Generator) -> Any:
        """Play every round; there must be ``steps``, since each client is declared."""
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
        return choices
