"""Local trust, sealed: a user's reward or answer is made of the own rows, and leaves with noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpaudit import RunResult, Table
from dpaudit.base.fields import Positive
from private_bo.gp import FiniteDomain, Kernel, Matern
from private_bo.local import ldp, one_bit
from private_bo.own import answers
from private_bo.problems import Arms, Response, RewardSource
from private_bo.sealed.study import SealedProblem, SealedStudy, decimal


@dataclass(eq=False)
class TableRewards(RewardSource):
    """Users of a table, who are asked one after another; what they answer is a handle.

    Attributes:
        data: all rows.
        names: of the users, in the order in which they are asked.
        answers_per_user: how often each is asked, in a row.
    """

    data: Any
    names: Sequence[str]
    answers_per_user: int
    _asked: int = field(init=False, default=0)

    def respond(self, index: int, rng: np.random.Generator) -> Response:
        """The next user's rows about a point."""
        user = self.names[self._asked // self.answers_per_user]
        self._asked += 1
        about = f"point = {index} AND reward IS NOT NULL"
        return Response(user, self.data.of_units([user]).filter(about))


@dataclass(frozen=True)
class SealedAnswers(SealedStudy, ldp.LocalAnswers):
    """Base of the locally private algorithms on a table of ``user``, ``point`` and ``reward``.

    A row says what a user's reward at a point is, the number of a point of the domain from 0 on. A
    user with several rows there has the one that a keyed hash chooses; one without answers the
    middle of the range. Override ``table`` to derive both columns of others.

    Attributes:
        domain: the points that may be asked about.
        kernel: the prior covariance that the policy uses.
        labels: names of the points, or empty.
        step: to whose multiples rewards are rounded.
    """

    default_data: str = "rewards.csv"  # type: ignore[misc]
    domain: FiniteDomain = field(default_factory=lambda: FiniteDomain.grid(20))
    kernel: Kernel = field(default_factory=lambda: Matern(0.2, nu=2.5))
    labels: tuple[str, ...] = ()
    step: Positive = 1e-6

    @property
    def people(self) -> int:
        """One user for every ``answers_per_user`` responses."""
        return -(-self.responses // self.answers_per_user)

    def not_covered(self) -> tuple[str, ...]:
        """As without a seal, but for a regret, which nobody is told here."""
        *others, _ = super().not_covered()
        return tuple(others)

    def table(self) -> Table:
        """Users, numbers of points, and rewards within the public range."""
        point: dict[str, Any] = {"type": "integer", "range": [0, self.domain.size - 1]}
        reward = {"type": "number", "range": list(self.range), "step": self.step}
        columns = {"point": point, "reward": reward}
        return Table(self.default_data, "user", columns, roster=self.names)

    def run(self, data: Any, ledger: Any, rng: np.random.Generator) -> RunResult:
        """Let the policy ask the users of the table."""
        rewards = TableRewards(data, self.names, self.answers_per_user)
        arms = Arms(
            self.default_data, self.domain, self.kernel, rewards=rewards, labels=self.labels
        )
        return self.result(arms, self.search(arms, ledger, rng))

    def release(self, ledger: Any, user: str, value: Any) -> float:
        """A user's reward with noise; 0 is the middle of the range."""
        return sent(ledger, user, value.vector("reward"), 0.0, ldp.AT)


def sent(ledger: Any, user: str, vectors: Any, missing: float, at: str) -> float:
    """What one user answers, with noise; ``missing`` in place of one who has no row."""
    (released,) = ledger.answers(vectors, units=[user], default=missing, at=at)
    return float(released)


@dataclass(frozen=True)
class LDPATAGPUCB(SealedAnswers, ldp.LDPATAGPUCB):
    """LDP-ATA-GP-UCB on a table; fields as in the algorithm and in the base."""


@dataclass(frozen=True)
class LDPTGPUCB(SealedAnswers, ldp.LDPTGPUCB):
    """LDP-TGP-UCB on a table; fields as in the algorithm and in the base."""


@dataclass(frozen=True)
class LDPMoMAGPUCB(SealedAnswers, ldp.LDPMoMAGPUCB):
    """LDP-MoMA-GP-UCB on a table; fields as in the algorithm and in the base."""


@dataclass(frozen=True)
class LDPOneBitGP(SealedAnswers, one_bit.LDPOneBitGP):
    """One-bit responses on a table; fields as in the algorithm and in the base.

    The coin of a rounding is the policy's and so is public: no proof rests on it. The bit says then
    on which side of a public threshold the reward lies.
    """

    def bit(self, user: str, reward: Any, coin: float) -> tuple[Any, int]:
        """Whether the reward is above the threshold, and the bit of one in the middle."""
        threshold = self.lower + coin * (self.upper - self.lower)
        above = f"CASE WHEN reward > {decimal(threshold)} THEN 1 ELSE 0 END"
        return reward.vector(above), int(coin < 0.5)

    def release(self, ledger: Any, user: str, value: Any) -> float:
        """A user's bit, at random another one."""
        vectors, missing = value
        return sent(ledger, user, vectors, missing, ldp.AT)


@dataclass(frozen=True)
class LocalStudy(SealedProblem, answers.LocalStudy):
    """A study under local trust; fields as in the study and in the base."""

    def run(self, data: Any, ledger: Any, rng: np.random.Generator) -> RunResult:
        """Ask one user of the table after the other."""
        rows = (data.of_units([user]) for user in self.names)
        return self.result(data, self.search(rows, ledger, rng))

    def device(self, user: str, ledger: Any, rng: np.random.Generator) -> answers.Device:
        """What asks for a user's answer."""
        return SealedDevice(self, user, ledger, rng)


@dataclass(eq=False)
class SealedDevice(answers.Device):
    """Makes handles of a user's answer in place of numbers; attributes as in the base."""

    study: LocalStudy

    def __post_init__(self) -> None:
        """The ledger is a sealed one."""

    def level(self, value: Any, coin: float) -> tuple[Any, int]:
        """Above how many thresholds the answer is, and the level of one in the middle."""
        (low, high), levels = self.study.answers, self.study.levels
        ends = [low + (each + 0.5) * (high - low) for each in levels.thresholds(coin)]
        above = " + ".join(f"CASE WHEN value > {decimal(end)} THEN 1 ELSE 0 END" for end in ends)
        return value.rows().vector(above), levels.number(0.0, coin)

    def release(self, own: Any) -> int:
        """One release of a handle."""
        vectors, missing = own
        return int(sent(self.ledger, self.user, vectors, missing, answers.AT))
