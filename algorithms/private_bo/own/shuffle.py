"""Users answer public questions through a trusted shuffler, which draws in secret whom it asks.

Every question goes to one user, who is drawn afresh from all, and the server sees what this user's
device sends, without a name. Nobody else knows who was asked, so that users hide each other over
all questions, and the next question may depend on every earlier answer. At ε = 1 and δ = 1e-5 an
answer may cost its device an ε₀ of 3.11 among 500 users and of 4.36 among 2000.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from itertools import count
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit import guarantee
from dpaudit.base import validate
from dpaudit.base.errors import InputError, PublicError
from dpaudit.base.fields import OpenProbability
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Finding
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import RandomizedResponse
from dpaudit.plan import FixedSizeSampling, Invocation, Plan, ReplaceOne, TrustModel
from dpaudit.project import RunResult
from private_bo.levels import Levels
from private_bo.own.agent import scale_answer
from private_bo.own.answers import AT, LocalStudy
from private_bo.own.server import Question, ReleasedAnswer
from private_bo.own.studies import OwnStudy
from private_bo.redacted_errors import ExitError

_FINDINGS = FindingTable(__name__)
FAILED = "failed objectives"
"""Of the owner's result: how many answers count as the middle, as the objective failed."""
_LARGEST = 16.0
"""Of ε₀: rounding to levels matters more than its lies."""
_SLACK = 1e-3
_LEAST = 1e-300


def hidden(law: RandomizedResponse, users: int) -> Invocation:
    """As many answers as there are users, each of one who is drawn of all."""
    return Invocation(
        law, 1.0, OwnStudy.unit, ReplaceOne(), TrustModel.CENTRAL,
        sampling=FixedSizeSampling(1, users), count=users, at=AT,
    )  # fmt: skip


@lru_cache(maxsize=64)
def hidden_levels(epsilon: float, delta: float, users: int) -> Levels | None:
    """Levels of about the largest ε₀ at which all answers are (ε, δ)-private.

    None where that is less than ε, as it is among few users at a large ε: one who is drawn twice
    is protected less than one who answers once.

    Raises:
        InputError: if ε is so small that all responses are coins.
    """
    from scipy.optimize import brentq

    # About e^ε₀, by the second moment of the losses; what is found below is proved.
    about = max(epsilon, math.log1p(users * epsilon**2 / (2 * math.log(1 / delta))))
    answers, largest = Levels.best(about).law.k, min(_LARGEST, about + 1.0)

    @cache
    def excess(local: float) -> float:
        law = RandomizedResponse.calibrated(epsilon=local, k=answers)
        proved = guarantee(Plan.of(hidden(law, users)), delta).epsilon  # 0 where δ covers all
        return math.log(max(proved, _LEAST) / epsilon)

    if epsilon >= largest or excess(epsilon) > 0:
        return None
    local = largest
    if excess(largest) > 0:
        local = float(brentq(excess, epsilon, largest, xtol=_SLACK * epsilon, rtol=_SLACK))
    while excess(local) > 0:
        local *= 1 - _SLACK
    return Levels(RandomizedResponse.calibrated(epsilon=max(local, epsilon), k=answers))


@dataclass(frozen=True)
class ShuffleStudy(LocalStudy):
    """Every question goes to a user whom the shuffler draws from all; fields as in the base.

    There are as many questions as users: one user is asked several times, another never. Where
    being hidden gains nothing, every user is asked once, and the search is the local one.

    Attributes:
        delta: δ of one user.
    """

    trust: ClassVar[TrustModel] = TrustModel.CENTRAL

    delta: OpenProbability = 1e-5

    @cached_property
    def hides(self) -> bool:
        """Whether users are drawn; this follows from public numbers."""
        return hidden_levels(self.epsilon, self.delta, self.users) is not None

    @cached_property
    def levels(self) -> Levels:
        """How an answer leaves."""
        alone = Levels.best(self.epsilon)
        return hidden_levels(self.epsilon, self.delta, self.users) or alone

    def invocations(self) -> Iterator[Invocation]:
        """Answers of users who are drawn, or one of each."""
        return iter([hidden(self.mechanism, self.users)]) if self.hides else super().invocations()

    def findings(self) -> tuple[Finding, ...]:
        """Those of the base class; and whom the users trust, or that they need not."""
        rule, about = "nobody-to-hide-among", {}
        if self.hides:
            local = float(self.mechanism.pair(1.0).pure_epsilon)
            rule, about = "trusted-shuffler", {"local": f"{math.ceil(local * 1000) / 1000:g}"}
        return (*super().findings(), _FINDINGS(rule, **about))

    def not_covered(self) -> tuple[str, ...]:
        """What the claim leaves out."""
        secret = "Whom the shuffler asks, and when, must stay its secret; the proof rests on it."
        return ((secret,) if self.hides else ()) + super().not_covered()

    def shuffler(self, ledger: Ledger, rng: np.random.Generator) -> Shuffler:
        """The only party that knows who answers; ``rng`` makes coins of answers."""
        return Shuffler(self, ledger, rng)

    def search(self, problem: Iterable[Any], ledger: Ledger, rng: np.random.Generator) -> Any:
        """Ask question after question; a failing objective counts as the middle of the range.

        Returns:
            The server, and how often the objective failed, which is private.

        Raises:
            ExitError: if the objective asks for the end of the process.
        """
        draws, coins = rng.spawn(2)
        server, shuffler, records = self.server(draws), self.shuffler(ledger, coins), list(problem)
        failed = 0
        for _ in records:
            question, place = server.ask(), shuffler.draw()
            try:
                told = shuffler.answer(question, self.measure(question.point, records[place]))
            except ExitError:
                raise
            except PublicError:  # of one who was drawn in secret; nothing was released
                failed += 1
                told = shuffler.answer(question, None)
            server.tell(told)
        return server, failed

    def result(self, problem: Any, found: Any) -> RunResult:
        """As in the base class; how often the objective failed is for the owner alone."""
        server, failed = found
        return replace(super().result(problem, server), owner=RunResult({FAILED: failed}))

    # -- audit -----------------------------------------------------------------------------------

    def audit_release(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """How many answers are level 1 if one user always has that of the data, and others 0."""
        if not self.hides:
            return super().audit_release(data, size, rng)
        lie, truth = self.mechanism.answer_probabilities
        own = rng.binomial(self.users, 1 / self.users, size)
        told = truth if int(self.mechanism.prepare(data)) == 1 else lie
        return np.asarray(rng.binomial(own, told) + rng.binomial(self.users - own, lie))

    def statistic(self, releases: Sequence[Any]) -> NDArray[Any]:
        """How many answers are level 1, or what the first user sent."""
        own = super().statistic(releases)
        return np.asarray(np.sum(np.asarray(releases) == 1)) if self.hides else own


@dataclass(eq=False)
class Shuffler:
    """Draws in secret who is asked, and passes on what the user's device sends, without a name.

    Attributes:
        study: public configuration.
        ledger: the door, which draws users as well as noise.
        rng: of coins that make levels of answers, on which no privacy rests.
    """

    study: ShuffleStudy
    ledger: Ledger
    rng: np.random.Generator
    _drawn: int | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        validate.instance(Ledger, ledger=self.ledger)
        validate.instance(np.random.Generator, rng=self.rng)
        self._names = self.study.names
        self._turns = count()

    def draw(self) -> int:
        """The number of the user to be asked next, from 0: the shuffler's secret.

        Raises:
            InputError: if the last one has not answered, or no question is left.
        """
        if self._drawn is not None:
            raise InputError(
                "draw is called before the last user has answered; call answer with None if the "
                "user is silent."
            )
        if (turn := next(self._turns)) >= self.study.users:
            raise InputError(f"users is {self.study.users}, and that many have been drawn.")
        self._drawn = self.ledger.sample(self._names, at=AT)[0] if self.study.hides else turn
        return self._drawn

    def answer(self, question: Question, value: Any) -> ReleasedAnswer:
        """What the server is told of the drawn user's answer.

        Args:
            question: that the user was asked.
            value: the answer; None if there is none, which counts as the middle of the range.

        Raises:
            InputError: if nobody has been drawn, or the answer is no finite number; nothing is
                released then.
        """
        study = self.study
        validate.instance(Question, question=question)
        if self._drawn is None:
            raise InputError("answer is called before draw; draw a user first.")
        scaled = 0.0 if value is None else scale_answer(value, study.answers)
        level = study.levels.number(scaled, self.rng.random())
        unit = None if study.hides else self._names[self._drawn]
        released = self.ledger.release(study.mechanism, level, unit=unit, at=AT)
        self._drawn = None
        return study.read(question, int(released))
