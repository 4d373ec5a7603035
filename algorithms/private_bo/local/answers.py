"""What all locally private algorithms have in common: users who each answer through one door."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked
from dpaudit.certificate import Claim, Finding, Severity
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import Mechanism
from dpaudit.plan import Invocation, Plan, PrivacyUnit, ReplaceOne, TrustModel
from dpaudit.project import AuditPair, Move, RunResult, Subject
from private_bo.local.algorithm import bandit_problem
from private_bo.local.results import run_result
from private_bo.local.users import Channel, Outcome, Users
from private_bo.problems import AnotherAnswer, BanditProblem
from private_bo.problems.sources import load_problem

_AT = "reward"


class LocalAnswers(Checked, Subject):
    """Base of the algorithms whose users randomise their own reward, clipped to a public range.

    The dataclass has the fields ``epsilon``, ``steps``, ``answers_per_user`` and
    ``bounds_are_public``, and says what is released and how it learns from it.
    """

    if TYPE_CHECKING:  # at run time the dataclass's own annotations, with their checks, count
        epsilon: float
        steps: int
        answers_per_user: int
        bounds_are_public: bool

    source: ClassVar[str] = ""
    """Where the claim is made."""
    bounds: ClassVar[tuple[str, str]]
    """What a finding calls the public bounds, at the head of a sentence and within one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.answers_per_user > self.responses:
            raise InputError(
                f"answers_per_user is {self.answers_per_user}; it must be at most the number of "
                f"responses, {self.responses}."
            )

    # -- what an algorithm says ------------------------------------------------------------------

    @property
    @abstractmethod
    def range(self) -> tuple[float, float]:
        """The least and the largest reward that are not clipped."""

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """The local randomiser that every reward passes."""

    @property
    @abstractmethod
    def sensitivity(self) -> float:
        """How far one reward may move what the randomiser is given."""

    @abstractmethod
    def play(self, users: Users, rng: np.random.Generator) -> Outcome:
        """The algorithm, on responses that have left their users.

        Args:
            users: whom to ask, over :meth:`channel`.
            rng: source of what has no privacy role.
        """

    @abstractmethod
    def channel(self, ledger: Ledger, rng: np.random.Generator) -> Channel:
        """What happens to a reward on its way to the learner, who sees what the ledger releases."""

    @abstractmethod
    def _settings(self) -> dict[str, float]:
        """What a reader of the result must know of the configuration."""

    @property
    def responses(self) -> int:
        """How many rewards leave their users."""
        return self.steps

    @property
    def plays(self) -> int:
        """How many users are asked about a point in a row."""
        return 1

    # -- privacy ---------------------------------------------------------------------------------

    def plan(self) -> Plan:
        """One invocation: each user's reward, released by the user's own device.

        Different rounds are different users, so that composition is over the answers of one user.
        """
        unit = PrivacyUnit("response" if self.answers_per_user == 1 else "user")
        return Plan.of(
            Invocation(
                mechanism=self.mechanism,
                sensitivity=self.sensitivity,
                unit=unit,
                relation=ReplaceOne(),
                trust=TrustModel.LOCAL,
                count=self.answers_per_user,
                total=self.responses,
                at=_AT,
            )
        )

    def claim(self) -> Claim:
        """ε for each response (Lemma 1 of the paper), so cε for a user of c answers."""
        total = self.answers_per_user * Fraction(self.epsilon)
        epsilon = float(total)
        while Fraction(epsilon) < total:
            epsilon = math.nextafter(epsilon, math.inf)
        source = self.source
        if self.answers_per_user > 1:
            source += f"; {self.answers_per_user} answers of one user"
        return Claim(epsilon, 0.0, source)

    def findings(self) -> tuple[Finding, ...]:
        """Data-dependent bounds."""
        if self.bounds_are_public:
            return ()
        return (
            Finding(
                "data-dependent-bound",
                Severity.WARNING,
                f"{self.bounds[0]} are statistics of the rewards that they protect; the clip and "
                "the noise scale reveal them, and the guarantee does not count it.",
                f"Choose {self.bounds[1]} from public knowledge; the clip makes any choice safe.",
                _AT,
            ),
        )

    def not_covered(self) -> tuple[str, ...]:
        """What an observer learns beside the responses."""
        return (
            "Which point each user was asked about is public, and depends on the responses of "
            "earlier users only.",
            "That a user answered, and when, is not hidden.",
            "Answers of one user to other systems, or in another run, add up with these.",
            "The regret and the true best come from the true means; a run shows them to the owner "
            "of the data alone.",
        )

    def audit_pairs(self) -> tuple[AuditPair, ...]:
        """The ends of the range, and rewards far outside that the clip must catch."""
        lower, upper = self.range
        middle, reach = (lower + upper) / 2, 5.0 * (upper - lower)
        below, above = middle - reach, middle + reach
        pairs = (
            (lower, upper, "the ends of the range, where the guarantee is tight"),
            (below, above, "rewards outside the range, which the clip must catch"),
            (middle, above, "an ordinary reward against one far outside the range"),
        )
        return tuple(AuditPair(self._all(x), self._all(y), why) for x, y, why in pairs)

    def _all(self, reward: float) -> float | list[float]:
        """The same reward in every answer of one user."""
        return reward if self.answers_per_user == 1 else [reward] * self.answers_per_user

    def audit_release(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """What one user's answers look like, ``size`` times.

        Args:
            data: the user's reward, or the list of all ``answers_per_user`` rewards.
            size: number of independent transcripts.
            rng: source of the noise.

        Returns:
            Shape (size,), or (size, answers_per_user) if there are several answers.

        Raises:
            InputError: if the number of rewards is not ``answers_per_user``.
        """
        rewards = validate.real_array(data=data)
        wanted = () if self.answers_per_user == 1 else (self.answers_per_user,)
        if rewards.shape != wanted:
            raise InputError(
                f"data has shape {rewards.shape}; it must be one user's "
                f"{'reward' if not wanted else f'list of {self.answers_per_user} rewards'}."
            )
        return self._model(rewards, size, rng)

    def _model(self, rewards: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        return self.mechanism.release_many(rewards, size, rng)

    def modelled(self) -> Iterator[tuple[float, BanditProblem]]:
        """Rewards at the ends of the range, each with a problem whose first user has it."""
        if self.answers_per_user > 1:
            return  # which later answers are the same user's follows from the points
        problem = self.load(self.default_data, np.random.default_rng(0))
        for reward in self.range:
            yield reward, AnotherAnswer.of(problem, turn=0, value=reward)

    def statistic(self, releases: Sequence[Any]) -> NDArray[Any]:
        """The first answer."""
        return np.asarray(releases[0])

    # -- run -------------------------------------------------------------------------------------

    def load(self, source: str, rng: np.random.Generator) -> BanditProblem:
        """A problem by name or path; see :func:`private_bo.problems.sources.load_problem`."""
        return load_problem(source, rng, answers_per_user=self.answers_per_user)

    def neighbours(self, data: BanditProblem, rng: np.random.Generator) -> Iterator[Move]:
        """One user's reward replaced, within the range and far beyond."""
        first, last = 0, self.responses - 1
        early, late, middle = (int(turn) for turn in rng.integers(self.responses, size=3))
        lower, upper = self.range
        centre, reach = (lower + upper) / 2, 500.0 * (upper - lower)
        tries = (
            (first, upper, "the top of the range", False),
            (early, lower, "the bottom of the range", False),
            (middle, centre, "the middle of the range", False),
            (last, upper, "the top of the range", False),
            (first, centre - reach, "a value far below the range", True),
            (late, centre + reach, "a value far above the range", True),
        )
        for turn, value, what, extreme in tries:
            other = AnotherAnswer.of(data, turn=turn, value=value)
            yield Move(other, f"the reward of the user of round {turn + 1} is {what}", extreme)

    def run(self, data: BanditProblem, ledger: Ledger, rng: np.random.Generator) -> RunResult:
        """Find the point of largest mean reward; each reward leaves only through the ledger.

        Args:
            data: the problem whose users are asked.
            ledger: a ledger of :meth:`plan`; it is charged by user.
            rng: source of the users' answers and of the dictionaries.

        Raises:
            InputError: if ``data`` is no problem, a reward is no finite number, or the users run
                out.
            PlanMismatchError: if a user answers more often than ``answers_per_user``.
        """
        problem = bandit_problem(data=data)
        outcome = self.play(Users(problem, self.channel(ledger, rng), rng, self.plays), rng)
        notes = {"epsilon of one response": self.epsilon} | self._settings()
        return run_result(type(self).__name__, problem, outcome, notes)

    def release(self, ledger: Ledger, user: str, value: Any) -> float:
        """One release at the ledger's door."""
        return float(ledger.release(self.mechanism, value, unit=user, at=_AT))


def one_number(user: str, reward: Any) -> Any:
    """The reward, if it is not several.

    Raises:
        InputError: if it has a shape.
    """
    if np.ndim(reward) != 0:
        raise InputError(f"reward of {user!r} has shape {np.shape(reward)}; it must be one number.")
    return reward
