"""What the three locally private algorithms have in common: configuration, claim, plan and run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit import validate
from dpaudit.certificate import Claim, Finding, Severity
from dpaudit.errors import InputError
from dpaudit.fields import Checked, Count, NonNegative, OpenProbability, Positive
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import Laplace
from dpaudit.plan import Invocation, Plan, PrivacyUnit, ReplaceOne, TrustModel
from dpaudit.project import AuditPair, Move, RunResult, Subject
from private_bo.local.algorithm import Algorithm, bandit_problem
from private_bo.local.results import run_result
from private_bo.local.schedules import Constants
from private_bo.local.users import Channel, Outcome, Users
from private_bo.problems import AnotherAnswer, BanditProblem
from private_bo.problems.sources import load_problem

__all__ = ["LocallyPrivate"]

_AT = "reward"


@dataclass(frozen=True)
class LocallyPrivate(Checked, Subject):
    """Base of the algorithms whose users add Laplace noise to their own reward.

    The mechanism is Curator 1 of Zhou & Tan 2021 with the clip that its claim needs:
    ``clip(y, ±(B+R)) + Laplace(2(B+R)/ε)``, which is ε-locally private for every real input,
    whatever the law of the noise. Section 4.5 of the paper does without the clip, for unbounded
    noise, and its (ε, δ) is then an average over the noise; that variant is not offered.

    Rewards are neither scaled nor centred: B, R and the rewards are in the same units. Where B + R
    is too small for the data, rewards are clipped, which costs accuracy and never privacy.

    Attributes:
        epsilon: ε of one response.
        reward_bound: B, bound of the mean reward.
        noise_bound: R, bound of the deviation of a reward from its mean.
        steps: T, the number of responses at most.
        confidence: δ, the failure probability of the regret bound (no privacy parameter).
        dictionary_accuracy: ε̃ in (0, 1) of the Nyström features (no privacy parameter).
        regularisation: λ.
        answers_per_user: how often one user may answer; c answers cost cε.
        width_multiplier: factor on every confidence width β; 1 is the theorem's.
        bounds_are_public: whether B and R were chosen without looking at the rewards.

    Raises:
        InputError: if a field is out of its range.
    """

    paper_place: ClassVar[str] = ""
    algorithm: ClassVar[Algorithm[Any]]

    epsilon: Positive = 1.0
    reward_bound: Positive = 1.0
    noise_bound: NonNegative = 1.0
    steps: Count = 1000
    confidence: OpenProbability = 0.1
    dictionary_accuracy: OpenProbability = 0.1
    regularisation: Positive = 1.0
    answers_per_user: Count = 1
    width_multiplier: Positive = 1.0
    bounds_are_public: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < (scale := 2.0 * self.clip_bound / self.epsilon) < math.inf:
            raise InputError(
                f"epsilon is {self.epsilon!r}, so that the noise scale 2(B+R)/ε is {scale}; it "
                "must be a finite number above 0."
            )
        if self.answers_per_user > self.responses:
            raise InputError(
                f"answers_per_user is {self.answers_per_user}; it must be at most the number of "
                f"responses, {self.responses}."
            )

    # -- privacy ---------------------------------------------------------------------------------

    @property
    def clip_bound(self) -> float:
        """B + R, the largest magnitude of a reward that is not clipped."""
        return self.reward_bound + self.noise_bound

    @property
    def responses(self) -> int:
        """How many rewards leave their users."""
        return self.steps

    @property
    def mechanism(self) -> Laplace:
        """The local randomiser that every reward passes."""
        bound = self.clip_bound
        return Laplace.calibrated(
            epsilon=self.epsilon, sensitivity=2.0 * bound, clip=(-bound, bound)
        )

    def plan(self) -> Plan:
        """One invocation: each user's reward, released by the user's own device.

        Different rounds are different users, so that composition is over the answers of one user.
        """
        unit = PrivacyUnit("response" if self.answers_per_user == 1 else "user")
        return Plan.of(
            Invocation(
                mechanism=self.mechanism,
                sensitivity=2.0 * self.clip_bound,
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
        source = f"Zhou & Tan 2021, Lemma 1 and {self.paper_place}"
        if self.answers_per_user > 1:
            source += f"; {self.answers_per_user} answers of one user"
        return Claim(epsilon, 0.0, source)

    def findings(self) -> tuple[Finding, ...]:
        """Data-dependent bounds, and settings for which the regret theorem does not speak."""
        findings = []
        if not self.bounds_are_public:
            findings.append(
                Finding(
                    "data-dependent-bound",
                    Severity.WARNING,
                    "The reward bound B and the noise bound R are statistics of the rewards that "
                    "they protect; the clip and the noise scale reveal them, and the guarantee "
                    "does not count it.",
                    "Choose B and R from public knowledge; the clip makes any choice safe.",
                    _AT,
                )
            )
        if departures := self._departures():
            findings.append(
                Finding(
                    "off-theorem",
                    Severity.NOTE,
                    f"The regret bound is not the paper's: {', '.join(departures)}. Privacy is "
                    "not affected.",
                    "Keep the defaults where the regret bound matters.",
                )
            )
        return tuple(findings)

    def _departures(self) -> list[str]:
        """Settings that differ from the theorem's."""
        factor = self.width_multiplier
        return [] if factor == 1.0 else [f"widths are {factor:g} times the theorem's"]

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
        bound = self.clip_bound
        far = 10.0 * bound
        pairs = (
            (-bound, bound, "the ends of the range, where the guarantee is tight"),
            (-far, far, "rewards outside ±(B+R), which the clip must catch"),
            (0.0, far, "an ordinary reward against one far outside the range"),
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
        return self.mechanism.release_many(rewards, size, rng)

    def modelled(self) -> Iterator[tuple[float, BanditProblem]]:
        """Rewards at the ends of the range, each with a problem whose first user has it."""
        if self.answers_per_user > 1:
            return  # which later answers are the same user's follows from the points
        problem = self.load(self.default_data, np.random.default_rng(0))
        for reward in (-self.clip_bound, self.clip_bound):
            yield reward, AnotherAnswer.of(problem, turn=0, value=reward)

    def statistic(self, releases: Sequence[Any]) -> NDArray[Any]:
        """The first answer."""
        return np.asarray(releases[0])

    # -- run -------------------------------------------------------------------------------------

    def load(self, source: str, rng: np.random.Generator) -> BanditProblem:
        """A problem by name or path; see :func:`private_bo.problems.sources.load_problem`."""
        return load_problem(source, rng, answers_per_user=self.answers_per_user)

    def neighbours(self, data: BanditProblem, rng: np.random.Generator) -> Iterator[Move]:
        """One user's reward replaced, within ±(B + R) and far beyond."""
        first, last = 0, self.responses - 1
        early, late, middle = (int(turn) for turn in rng.integers(self.responses, size=3))
        bound = self.clip_bound
        far = 1e3 * bound
        tries = (
            (first, bound, "the top of the range", False),
            (early, -bound, "the bottom of the range", False),
            (middle, 0.0, "the middle of the range", False),
            (last, bound, "the top of the range", False),
            (first, -far, "a value far below the range", True),
            (late, far, "a value far above the range", True),
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
        outcome = self.play(Users(problem, self.channel(ledger), rng, self.plays), rng)
        notes = {"epsilon of one response": self.epsilon} | self._settings()
        return run_result(type(self).__name__, problem, outcome, notes)

    def play(self, users: Users, rng: np.random.Generator) -> Outcome:
        """The algorithm, on responses that have left their users.

        Args:
            users: whom to ask, over :meth:`channel`.
            rng: source of the dictionaries.
        """
        return self.algorithm.play(users, self.constants, rng)

    def channel(self, ledger: Ledger) -> Channel:
        """CTL(ε), Curator 1: the learner sees what the ledger releases."""
        mechanism = self.mechanism

        def release(user: str, reward: float) -> float:
            if np.ndim(reward) != 0:
                raise InputError(
                    f"reward of {user!r} has shape {np.shape(reward)}; it must be one number."
                )
            return float(ledger.release(mechanism, reward, unit=user, at=_AT))

        return release

    @property
    def constants(self) -> Constants:
        """What thresholds and widths follow from, with v and c as in Theorem 2 and Corollary 1."""
        B, R, scale = self.reward_bound, self.noise_bound, self.mechanism.scale
        return Constants(
            horizon=self.steps,
            B=B,
            R=R,
            v=B**2 + R**2 + 2.0 * scale**2,
            c=R**2 + 2.0 * scale**2,
            confidence=self.confidence,
            regularisation=self.regularisation,
            width_multiplier=self.width_multiplier,
            laplace_scale=scale,
            accuracy=self.dictionary_accuracy,
        )

    @property
    def plays(self) -> int:
        """How many users are asked about a point in a row."""
        return 1

    def _settings(self) -> dict[str, float]:
        """What a reader of the result must know of the configuration."""
        return {"width multiplier": self.width_multiplier}
