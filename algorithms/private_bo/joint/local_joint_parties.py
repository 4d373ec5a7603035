"""The protocol of Algorithm 3: a server that sees noisy statistics, one client for each user."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpaudit.errors import InputError
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import Gaussian
from private_bo.gp.types import Array
from private_bo.joint.local_joint_statistics import LocalStatistics
from private_bo.joint.parties import JointServer, RewardGate, unit_features
from private_bo.joint.statistics import Sums

__all__ = ["Client", "LocalServer", "Parameters", "Report"]


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


class Client:
    """One user: plays an arm of the own decision set and adds noise to what is sent.

    Args:
        name: charged in the ledger.
        statistics: what is sent.
        mechanism: its noise.
        ledger: where the release is charged.
        gate: keeps the reward in range.
    """

    def __init__(
        self,
        name: str,
        statistics: LocalStatistics,
        mechanism: Gaussian,
        ledger: Ledger,
        gate: RewardGate,
    ) -> None:
        self.name = name
        self._statistics = statistics
        self._mechanism = mechanism
        self._ledger = ledger
        self._gate = gate
        self._answered = False
        self.arm: int | None = None
        """The arm that was played: known to the user alone."""

    def answer(
        self, parameters: Parameters, decision_set: Array, play: Callable[[int], float]
    ) -> Report:
        """Choose, play, and report with noise.

        Args:
            parameters: from the server.
            decision_set: the user's own, (n, d).
            play: the reward of an arm.

        Raises:
            InputError: if the client has answered before, or the decision set, the features or the
                reward are wrong. No noise is drawn then.
        """
        if self._answered:
            raise InputError(f"client {self.name!r} has answered; each answers once.")
        arm, phi = parameters.server.choose(decision_set)
        features = unit_features(phi, self._statistics.size)
        reward = self._gate(play(arm))
        value = self._statistics.encode(features, reward)
        noisy = self._ledger.release(self._mechanism, value, unit=self.name, at="statistics")
        self._answered = True
        self.arm = arm
        return Report(parameters.turn, self.name, np.asarray(noisy, dtype=np.float64))


class LocalServer:
    """Adds up reports and sends parameters.

    Args:
        statistics: how reports are read.
        deviation: of a report's noise, per unit of norm.
        steps: T.
        server: chooses arms from sums.
    """

    def __init__(
        self, statistics: LocalStatistics, deviation: float, steps: int, server: JointServer
    ) -> None:
        self._statistics = statistics
        self._deviation = deviation
        self._steps = steps
        self._server = server
        self._total = np.zeros(statistics.length)
        self._clients: set[str] = set()
        self.rounds = 0

    def parameters(self) -> Parameters:
        """What the client of the next round receives.

        Raises:
            InputError: if all rounds are over.
        """
        if self.rounds >= self._steps:
            raise InputError(
                f"steps is {self._steps} and all rounds have been played; declare more beforehand."
            )
        if self._server.due(self.rounds):
            self._server.observe(self.sums())
        return Parameters(self.rounds, self._server)

    def receive(self, report: Report) -> None:
        """Count a report.

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
        deviation = self._deviation * math.sqrt(self.rounds)
        return self._statistics.decode(self._total, self.rounds, deviation)
