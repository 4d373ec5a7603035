"""The protocol of Algorithm 3 of Dubey 2021: a server that sees noisy statistics, and the clients.

Line numbers count every printed line of the algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import Gaussian
from private_bo.gp.types import Array
from private_bo.hushed import hushed
from private_bo.joint.parties import JointServer, RewardGate, unit_features
from private_bo.joint.statistics import Encoding, Sums


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
        reward = self.gate(hushed(play)(arm))  # line 14
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
