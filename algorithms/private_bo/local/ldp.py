"""Bayesian optimisation under local differential privacy (Zhou & Tan 2021).

The trust model is :class:`LocalAnswers`: every user randomises the own reward before it leaves, and
a policy works with what arrives. The three algorithms of the paper add Laplace noise; they differ
in how they bear its tails, and their privacy is the same.

>>> from dpaudit.ledger import Ledger
>>> subject = LDPMoMAGPUCB(epsilon=1.0, steps=60, plays_per_epoch=6)
>>> rng = np.random.default_rng(0)
>>> problem = subject.load("taipei", rng)
>>> with Ledger(subject.plan(), rng=rng) as ledger:
...     result = subject.run(problem, ledger, rng)
>>> len(ledger), result.summary["responses"], str(subject.claim())
(60, 60, 'ε = 1, δ = 0')
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.base import validate
from dpaudit.base.errors import InputError, PublicError
from dpaudit.base.fields import Count, NonNegative, OpenProbability, Positive, Rate
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Claim, Finding
from dpaudit.mechanisms import Laplace, Mechanism
from dpaudit.plan import Invocation, PrivacyUnit, TrustModel
from dpaudit.project import AuditPair, Move, RunResult
from private_bo.base import Study, off_theorem_finding
from private_bo.local.policies import (
    Channel,
    Constants,
    Epochs,
    LaplaceFeatureTruncation,
    LaplaceTruncation,
    MedianOfMeans,
    Outcome,
    Policy,
    Users,
    adaptively_truncated_gp_ucb,
    median_of_means_gp_ucb,
    run_result,
    theorem_plays_per_epoch,
    truncated_gp_ucb,
)
from private_bo.problems import Arms, BanditProblem, ReplacedAnswer
from private_bo.problems.sources import load_problem

AT = "reward"
"""Label of the releases."""
_FINDINGS = FindingTable(__name__)


class LocalAnswers(Study):
    """Base of the algorithms whose users randomise their own reward, clipped to a public range.

    The dataclass has the fields ``epsilon``, ``steps``, ``answers_per_user`` and
    ``bounds_are_public``, and says what is released and how it learns from it.
    """

    if TYPE_CHECKING:  # at run time the dataclass's own annotations, with their checks, count
        epsilon: float
        steps: int
        answers_per_user: int
        bounds_are_public: bool

    trust: ClassVar[TrustModel] = TrustModel.LOCAL
    problem: ClassVar[type[BanditProblem]] = BanditProblem
    bound_finding: ClassVar[str] = "data-dependent-bound"
    """Of ``findings.toml``, where the public bounds are not public."""

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
    def channel(self, ledger: Any, rng: np.random.Generator) -> Channel:
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

    def invocations(self) -> Iterator[Invocation]:
        """One invocation: each user's reward, released by the user's own device.

        Different rounds are different users, so that composition is over the answers of one user.
        """
        yield self.invocation(
            self.mechanism,
            self.sensitivity,
            unit=PrivacyUnit("response" if self.answers_per_user == 1 else "user"),
            count=self.answers_per_user,
            total=self.responses,
            at=AT,
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
        return () if self.bounds_are_public else (_FINDINGS(self.bound_finding, AT),)

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
        """What one user's answers look like: of a reward, or of ``answers_per_user`` of them.

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
            yield reward, ReplacedAnswer.of(problem, turn=0, value=reward)

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
            other = ReplacedAnswer.of(data, turn=turn, value=value)
            yield Move(other, f"the reward of the user of round {turn + 1} is {what}", extreme)

    def search(self, problem: Arms, ledger: Any, rng: np.random.Generator) -> Outcome:
        """Ask users over :meth:`channel`; the generator draws answers and dictionaries."""
        return self.play(Users(problem, self.channel(ledger, rng), rng, self.plays), rng)

    def result(self, problem: Arms, found: Outcome) -> RunResult:
        """The recommendation; and for the owner the regret."""
        notes = {"epsilon of one response": self.epsilon} | self._settings()
        return run_result(type(self).__name__, problem, found, notes)

    def release(self, ledger: Any, user: str, value: Any) -> float:
        """One release at the ledger's door: of a reward, or of what a device makes of it."""
        own = one_number(user, value)
        return float(ledger.release(self.mechanism, own, unit=user, at=AT))


def one_number(user: str, reward: Any) -> Any:
    """The reward, if it is not several.

    Raises:
        InputError: if it has a shape.
    """
    if np.ndim(reward) != 0:
        raise PublicError(f"reward of {user!r:.60} is an array; it must be one number.")
    return reward


@dataclass(frozen=True)
class LocallyPrivate(LocalAnswers):
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
    """

    policy: ClassVar[Policy[Any]]

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
                f"epsilon is {self.epsilon!r}, so that the noise scale 2(B+R)/ε is {scale}; this "
                "scale must be a finite number above 0."
            )

    # -- privacy ---------------------------------------------------------------------------------

    @property
    def clip_bound(self) -> float:
        """B + R, the largest magnitude of a reward that is not clipped."""
        return self.reward_bound + self.noise_bound

    @property
    def range(self) -> tuple[float, float]:
        """±(B + R)."""
        return -self.clip_bound, self.clip_bound

    @property
    def sensitivity(self) -> float:
        """2(B + R)."""
        return 2.0 * self.clip_bound

    @property
    def mechanism(self) -> Laplace:
        """The local randomiser that every reward passes."""
        bound = self.clip_bound
        return Laplace.calibrated(
            epsilon=self.epsilon, sensitivity=2.0 * bound, clip=(-bound, bound)
        )

    def findings(self) -> tuple[Finding, ...]:
        """Data-dependent bounds, and settings for which the regret theorem does not speak."""
        findings = list(super().findings())
        if departures := self._departures():
            changed = f"The regret bound is not the paper's: {', '.join(departures)}."
            findings.append(
                off_theorem_finding(changed, "Keep the defaults where the regret bound matters.")
            )
        if reasons := self._obstacles():
            findings.append(_FINDINGS("cannot-learn", reasons=", and ".join(reasons)))
        return tuple(findings)

    def _obstacles(self) -> list[str]:
        """Why the run learns nothing, whatever the rewards: the theorems' settings do at usual T.

        The last width is at least that of one feature, or of a gain of 1 nat.
        """
        rounds = self.responses // self.plays
        reasons = ["all users are asked about one point, in a single epoch"]
        width = self.policy.schedule(self.constants).width(rounds, 1)
        least = width / math.sqrt(1.0 + rounds / self.regularisation)
        if least > 2.0 * self.reward_bound:
            reasons.append(
                f"its confidence intervals have half widths of at least {least:.3g} after "
                f"{rounds} rounds, and means differ by {2.0 * self.reward_bound:g} at most"
            )
        return reasons[0 if rounds == 1 else 1 :]

    def _departures(self) -> list[str]:
        """Settings that differ from the theorem's."""
        factor = self.width_multiplier
        return [] if factor == 1.0 else [f"widths are {factor:g} times the theorem's"]

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

    def _settings(self) -> dict[str, float]:
        """What a reader of the result must know of the configuration."""
        return {"width multiplier": self.width_multiplier}

    def play(self, users: Users, rng: np.random.Generator) -> Outcome:
        """The algorithm, on responses that have left their users.

        Args:
            users: whom to ask, over :meth:`channel`.
            rng: source of the dictionaries.
        """
        return self.policy.play(users, self.constants, rng)

    def channel(self, ledger: Any, rng: np.random.Generator | None = None) -> Channel:
        """CTL(ε), Curator 1: the learner sees what the ledger releases."""
        return lambda user, reward: self.release(ledger, user, reward)


@dataclass(frozen=True)
class LDPATAGPUCB(LocallyPrivate):
    """LDP-ATA-GP-UCB, Algorithm 1: truncates the whole history anew in every round, by feature.

    Fields as in the base class; the parameters are those of Theorem 2.
    """

    source: ClassVar[str] = "Zhou & Tan 2021, Lemma 1 and Algorithm 1"
    policy: ClassVar[Policy[Any]] = Policy(adaptively_truncated_gp_ucb, LaplaceFeatureTruncation)


@dataclass(frozen=True)
class LDPTGPUCB(LocallyPrivate):
    """LDP-TGP-UCB, Algorithm 2: truncates each response once, at a threshold of order ln t.

    Fields as in the base class (``dictionary_accuracy`` has no use, the posterior is exact); the
    parameters are those of Theorem 3.
    """

    source: ClassVar[str] = "Zhou & Tan 2021, Lemma 1 and Algorithm 2"
    policy: ClassVar[Policy[Any]] = Policy(truncated_gp_ucb, LaplaceTruncation)


@dataclass(frozen=True)
class LDPMoMAGPUCB(Epochs, LocallyPrivate):
    """LDP-MoMA-GP-UCB, Algorithm 3: asks k users about each point and takes a median of k fits.

    Fields as in the base class, and two more; the parameters are those of Corollary 1. Only
    N = ⌊T/k⌋ whole epochs are played, so that kN users answer.

    Attributes:
        plays_per_epoch: k, or None for the theorem's ⌈24 ln(4eT/δ)⌉, which leaves few epochs at
            usual T (3 at T = 1000).
        moment: α in (0, 1], the order 1 + α of the noise moment that the widths rest on.
    """

    source: ClassVar[str] = "Zhou & Tan 2021, Lemma 1 and Algorithm 3"
    policy: ClassVar[Policy[Any]] = Policy(median_of_means_gp_ucb, MedianOfMeans)

    plays_per_epoch: Count | None = None
    moment: Rate = 1.0

    @property
    def responses(self) -> int:
        """The kN rewards of whole epochs."""
        return self.plays * self.epochs

    @property
    def constants(self) -> Constants:
        """Those of the base class, with the order of the moment."""
        return replace(super().constants, moment=self.moment)

    def _departures(self) -> list[str]:
        theorem = theorem_plays_per_epoch(self.steps, self.confidence)
        plays = [] if self.plays == theorem else [f"k is {self.plays}, not {theorem}"]
        return plays + super()._departures()

    def _settings(self) -> dict[str, float]:
        return {"plays per epoch": self.plays, "epochs": self.epochs} | super()._settings()
