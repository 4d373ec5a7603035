"""One random bit of every reward, in batches through a trusted shuffler.

The bits are those of :mod:`~private_bo.local.one_bit`; in a batch each may tell more at the same
cost (:mod:`~private_bo.shuffles`).

>>> from dpaudit.ledger import Ledger
>>> subject = ShuffledOneBitGP(epsilon=1.0, lower=-1.4, upper=1.4, steps=60, batch=30)
>>> rng = np.random.default_rng(0)
>>> problem = subject.load("taipei", rng)
>>> with Ledger(subject.plan(), rng=rng) as ledger:
...     result = subject.run(problem, ledger, rng)
>>> len(ledger), result.summary["responses"], str(subject.claim())
(2, 60, 'ε = 1, δ = 1e-05')
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Count, OpenProbability
from dpaudit.certificate import Claim, Finding
from private_bo.local.one_bit import LDPOneBitGP
from private_bo.local.policies import Outcome, Users, ask_batches
from private_bo.problems import Arms, BanditProblem
from private_bo.problems.bandit import RewardSource
from private_bo.shuffles import ShuffledBatches, means_of, place_of, scale_of


@dataclass(frozen=True)
class ShuffledOneBitGP(ShuffledBatches, LDPOneBitGP):
    """One-bit responses of a batch, of which the shuffler tells how many are a one at each point.

    All of a batch hide each other, whatever they are asked about. In a run every user answers about
    all points of the batch, and the ledger takes one of these answers: it plays the shuffler, who
    draws the points, and the devices, which randomise. Fields as in the base class, and:

    Attributes:
        epsilon: ε of one user against whoever sees what the shuffler releases.
        delta: its δ.
        batch: how many users there are in the first batch, and in later ones at least; None for a
            number that follows from steps, ε and δ. A batch of 1 is what the base class does.
        points: how many points a batch is asked about, at most.
    """

    steps: Count = 2000
    delta: OpenProbability = 1e-5
    batch: Count | None = None
    points: Count = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.answers_per_user > 1:
            raise InputError(
                f"answers_per_user is {self.answers_per_user}; it must be 1, as a user is in one "
                "batch."
            )
        self.require_batches()

    # -- privacy ---------------------------------------------------------------------------------

    @property
    def people(self) -> int:
        """A user for each response."""
        return self.steps

    def claim(self) -> Claim:
        """(ε, δ) of a user, who is in one batch."""
        return Claim(self.epsilon, self.delta, self.source)

    @property
    def information(self) -> float:
        """Of all responses about one point: the inverse of the variance of their mean."""
        return self.bit_information

    def findings(self) -> tuple[Finding, ...]:
        """Those of the base class, whom the users trust, and batches that are few."""
        return (*super().findings(), *self.batch_findings())

    def not_covered(self) -> tuple[str, ...]:
        """What an observer learns beside the releases."""
        _, *others = super().not_covered()
        return (
            "Which points each batch was asked about is public, and depends on the releases of "
            "earlier batches only.",
            *others,
        )

    # -- run -------------------------------------------------------------------------------------

    def check_data(self, data: Any) -> BanditProblem:
        """The data, if whoever answers can be asked about any point.

        Raises:
            InputError: if not.
        """
        problem: BanditProblem = super().check_data(data)
        if type(problem.rewards).available is not RewardSource.available:
            raise InputError(
                f"data is {problem.name!r}, of people who each know one point; a shuffler hides "
                "only who might be asked about any."
            )
        return problem

    def search(self, problem: Arms, ledger: Any, rng: np.random.Generator) -> Outcome:
        """Ask batch after batch; the generator draws answers and the coins of their rounding."""

        def bit(user: str, reward: Any) -> Any:
            return self.bit(user, reward, rng.random())

        def release(number: int, points: list[int]) -> list[tuple[float, float]]:
            bits = self.batches[number]
            rows = [[users.ask(point) for point in points] for _ in range(bits.reports)]
            reports = ledger.release(bits, np.array(rows), at=place_of(number))
            return list(means_of(bits, reports))

        users = Users(problem, bit, rng)
        variances = [scale_of(bits) ** 2 for bits in self.batches]
        counts = [np.bincount(bits.asked).tolist() for bits in self.batches]
        return self.in_units(ask_batches(users, counts, variances, release))

    # -- audit -----------------------------------------------------------------------------------

    def _model(self, rewards: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """How many reports of the first batch are a one, where all others have a zero."""
        return self.ones(self._rounded(rewards, rng.random(size)), rng)

    def modelled(self) -> Iterator[tuple[float, BanditProblem]]:
        """None: in a run others have answers of their own."""
        return iter(())
