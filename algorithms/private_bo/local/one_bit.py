"""One random bit of every reward: less noise than Laplace's at the same proof, and a public range.

The three algorithms of Zhou & Tan 2021 know a reward to lie in ±(B + R) and add Laplace noise. Here
it lies in a public range [lower, upper], which need not be symmetric, and one bit of it leaves the
user (Duchi, Jordan and Wainwright 2018, *Minimax optimal procedures for locally private
estimation*, Section 4.2.1).

>>> from dpaudit.ledger import Ledger
>>> subject = LDPOneBitGP(epsilon=1.0, lower=-1.4, upper=1.4, steps=60)
>>> rng = np.random.default_rng(0)
>>> problem = subject.load("taipei", rng)
>>> with Ledger(subject.plan(), rng=rng) as ledger:
...     result = subject.run(problem, ledger, rng)
>>> len(ledger), result.summary["responses"], str(subject.claim())
(60, 60, 'ε = 1, δ = 0')
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Count, Finite, Positive
from dpaudit.certificate import Finding, Severity
from dpaudit.mechanisms import RandomizedResponse
from private_bo.local.ldp import LocalAnswers, one_number
from private_bo.local.policies import Channel, Outcome, Users, ask_ahead


@dataclass(frozen=True)
class LDPOneBitGP(LocalAnswers):
    """One-bit responses: a reward is clipped, rounded at random, and the bit is randomised.

    The clipped reward at the share s of the range becomes 1 with probability s, else 0; this bit
    passes randomised response of ε. Whatever the rounding's coin, the bit is a function of the
    reward alone, so that the release is ε-locally private for every real input, and no proof rests
    on the coin. With c = (e^ε + 1)/(e^ε - 1) the estimate c(2 bit - 1) has mean 2s - 1 and the
    variance c² - (2s - 1)², in which the reward's own deviation is included. Laplace noise of the
    same ε and range has 8/ε² beside it: 8 against at most 4.7 at ε = 1, 32 against 16.7 at 1/2.

    The learner is :mod:`~private_bo.local.policies`; it has no widths and nothing to tune.

    Attributes:
        epsilon: ε of one response.
        lower: lower end of the public range of a reward.
        upper: its upper end.
        steps: T, the number of responses.
        answers_per_user: how often one user may answer; c answers cost cε.
        bounds_are_public: whether the range was chosen without looking at the rewards.
    """

    source: ClassVar[str] = "Duchi, Jordan & Wainwright 2018, Section 4.2.1"
    bound_finding: ClassVar[str] = "data-dependent-range"

    epsilon: Positive = 1.0
    lower: Finite = -2.0
    upper: Finite = 2.0
    steps: Count = 1000
    answers_per_user: Count = 1
    bounds_are_public: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.upper - self.lower < math.inf:
            raise InputError(
                f"upper is {self.upper!r}; it must be above lower, {self.lower!r}, by a finite "
                "number."
            )
        if self.mechanism.p == 1.0:
            raise InputError(
                f"epsilon is {self.epsilon!r}, so small that all responses would be fair coin "
                "tosses; it must be larger."
            )

    # -- privacy ---------------------------------------------------------------------------------

    @property
    def range(self) -> tuple[float, float]:
        """From lower to upper."""
        return self.lower, self.upper

    @property
    def mechanism(self) -> RandomizedResponse:
        """The local randomiser of the bit."""
        return RandomizedResponse.calibrated(epsilon=self.epsilon)

    @property
    def sensitivity(self) -> float:
        """1: any reward may round to either bit."""
        return 1.0

    @property
    def scale(self) -> float:
        """The c of the estimate, in half widths of the range: its largest value."""
        return 1.0 / (1.0 - self.mechanism.p)

    @property
    def information(self) -> float:
        """Of all responses about one point: the inverse of the variance of their mean."""
        return self.steps / self.scale**2

    def findings(self) -> tuple[Finding, ...]:
        """Those of the base class; and a note where there is too little to learn from."""
        found = super().findings()
        if (deviation := 1.0 / math.sqrt(self.information)) >= 1.0:
            needed = math.ceil(self.steps / self.information)
            found += (
                Finding(
                    "cannot-learn",
                    Severity.NOTE,
                    f"If all {self.steps} users were asked about one point, its mean would be "
                    f"known up to a standard deviation of {deviation:.3g} half widths of the "
                    "range: no better than before.",
                    f"Ask more than {needed} users, or raise epsilon.",
                ),
            )
        return found

    def channel(self, ledger: Any, rng: np.random.Generator) -> Channel:
        """The learner sees the estimate of the bit that the ledger releases."""
        scale = self.scale

        def release(user: str, reward: Any) -> float:
            bit = self.bit(user, reward, rng.random())
            return scale * (2.0 * self.release(ledger, user, bit) - 1.0)

        return release

    def bit(self, user: str, reward: Any, coin: float) -> Any:
        """What the device makes of a reward, before its noise.

        Raises:
            InputError: if it is no one finite number.
        """
        return self._rounded(one_number(user, validate.private(reward)), coin)

    def _rounded(self, rewards: Any, coins: Any) -> NDArray[np.int64]:
        """1 with the probability that is the share of the range below the clipped reward."""
        clipped = np.clip(np.asarray(rewards, dtype=np.float64), self.lower, self.upper)
        share = (clipped - self.lower) / (self.upper - self.lower)
        return np.asarray(coins < share).astype(np.int64)

    def _model(self, rewards: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        bits = self._rounded(rewards, rng.random((size, *np.shape(rewards))))
        return self.mechanism.sample(bits, rng)

    # -- run -------------------------------------------------------------------------------------

    def play(self, users: Users, rng: np.random.Generator) -> Outcome:
        """Ask about what is worth most; the generator is not used."""
        outcome = ask_ahead(users, self.steps, self.scale**2)
        middle, half = (self.lower + self.upper) / 2, (self.upper - self.lower) / 2
        return Outcome(outcome.choices, middle + half * outcome.mean)

    def _settings(self) -> dict[str, float]:
        return {"lower": self.lower, "upper": self.upper}
