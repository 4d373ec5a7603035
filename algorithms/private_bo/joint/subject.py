"""What the joint and the local-joint algorithm have in common: problems, configuration and claim.

The problems are those of Dubey 2021, Section 6, whose users each bring a decision set.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Self, TypeVar

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Count, Interval, NonNegative, OpenProbability, Positive
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Finding
from dpaudit.project import AuditPair, Move, RunResult
from private_bo.base import Study, load_named, off_theorem_finding
from private_bo.gp import (
    AdditiveFeatures,
    Ball,
    Box,
    EigenFeatures,
    FeatureMap,
    QuadratureFeatures,
    SquaredExponential,
)
from private_bo.gp.types import Array
from private_bo.joint.parties import OutOfRange, RewardGate
from private_bo.joint.statistics import (
    FREE_WEIGHT,
    CentredStatistics,
    Encoding,
    Estimate,
    Learner,
    Noise,
    Width,
)


@dataclass(frozen=True, eq=False)
class DecisionProblem:
    """A sequence of users, each with a decision set and a reward for each arm of it.

    All of it is private to the user of the round.

    Attributes:
        name: for reports.
        arms: (T, n, d).
        table: mean rewards, (T, n).
        noise: the randomness of each user's answer, (T,): uniform on [0, 1] for Bernoulli rewards,
            else added to the mean.
        bernoulli: whether rewards are 0 or 1.
    """

    name: str
    arms: Array
    table: Array
    noise: Array
    bernoulli: bool = True

    @property
    def rounds(self) -> int:
        """T, the number of users."""
        return len(self.arms)

    def decision_set(self, turn: int) -> Array:
        """The arms of user ``turn`` (from 0), (n, d)."""
        return np.asarray(self.arms[turn])

    def reward(self, turn: int, arm: int) -> float:
        """What user ``turn`` answers to an arm, the same whenever it is asked."""
        mean, noise = float(self.table[turn, arm]), float(self.noise[turn])
        return float(noise < mean) if self.bernoulli else mean + noise

    def means(self, turn: int) -> Array:
        """Mean rewards of the arms of user ``turn``, (n,): for evaluation only."""
        return np.asarray(self.table[turn])

    def regret(self, choices: Sequence[int]) -> Array:
        """Cumulative pseudo-regret of the arms chosen so far, (len(choices),)."""
        gaps = [
            float((means := self.means(turn)).max() - means[arm])
            for turn, arm in enumerate(choices)
        ]
        return np.cumsum(gaps)

    def uniform_regret(self) -> float:
        """Expected regret of choosing at random."""
        gaps = [(means := self.means(turn)).max() - means.mean() for turn in range(self.rounds)]
        return float(np.sum(gaps))


@dataclass(frozen=True, eq=False, kw_only=True)
class ReplacedUser(DecisionProblem):
    """The neighbour of a problem: one user is another. Fields as in the base class, and three.

    Attributes:
        turn: which user, from 0.
        own: the decision set, (n, d).
        answer: the reward for every arm.
    """

    turn: int
    own: Array
    answer: float

    @classmethod
    def of(cls, problem: DecisionProblem, turn: int, own: Array | None, answer: float) -> Self:
        """The neighbour of that problem; None for the decision set that it has."""
        arms = problem.decision_set(turn) if own is None else own
        return cls(**vars(problem), turn=turn, own=arms, answer=answer)

    def decision_set(self, turn: int) -> Array:
        """As in the base class, or the other user's own."""
        return self.own if turn == self.turn else super().decision_set(turn)

    def reward(self, turn: int, arm: int) -> float:
        """As in the base class; the other user always answers alike."""
        return self.answer if turn == self.turn else super().reward(turn, arm)

    def means(self, turn: int) -> Array:
        """As in the base class; the other user always answers alike."""
        return np.full(len(self.own), self.answer) if turn == self.turn else super().means(turn)


_ARMS = 25


def bump(rng: np.random.Generator, steps: int) -> DecisionProblem:
    """The synthetic problem of Section 6.1.

    f = Σ_{i<=4} a_i k(x_i, ·) with k the squared exponential, l = 1, x_i uniform in the ball of
    radius 2 and ‖a‖₁ = 1, drawn again until max f >= 0.8. Each round has one arm with f >= 0.8,
    uniform among such points, and 24 others with f <= 0.6. Rewards are Bernoulli(f).
    """
    ball, kernel = Ball(2.0, 2), SquaredExponential(1.0)
    scan = ball.lattice(0.1)
    while True:
        centres = ball.sample(4, rng)
        weights = rng.exponential(size=4) * rng.choice([-1.0, 1.0], size=4)
        weights /= np.abs(weights).sum()
        if float((kernel(scan, centres) @ weights).max()) >= 0.8:
            break

    def f(points: Array) -> Array:
        return np.asarray(kernel(points, centres) @ weights)

    good, bad = np.empty((0, 2)), np.empty((0, 2))
    while len(good) < 2_000 or len(bad) < 20_000:
        points = ball.sample(40_000, rng)
        values = f(points)
        good = np.concatenate([good, points[values >= 0.8]])
        bad = np.concatenate([bad, points[values <= 0.6]])
    chosen = bad[rng.integers(len(bad), size=(steps, _ARMS))]
    place = rng.integers(_ARMS, size=steps)
    chosen[np.arange(steps), place] = good[rng.integers(len(good), size=steps)]
    table = f(chosen.reshape(-1, 2)).reshape(steps, _ARMS)
    return DecisionProblem("bump", chosen, table, rng.uniform(size=steps))


@dataclass(frozen=True)
class Benchmark:
    """A test function on [−½, ½]^d (Mutny & Krause 2018), scaled to [0, 1].

    Attributes:
        name: of the function.
        dimension: d.
        extremes: bounds of its raw values, which the scale is made from.
    """

    name: str
    dimension: int
    extremes: tuple[float, float]

    @property
    def domain(self) -> Box:
        """The cube [−½, ½]^d."""
        return Box((-0.5, 0.5), self.dimension)

    def __call__(self, X: Array) -> Array:
        """Values to be maximised, within [0, 1], (n,), for points (n, d)."""
        low, high = self.extremes
        return np.asarray((self.raw(X) - low) / (high - low))

    def raw(self, X: Array) -> Array:
        """Values before scaling, (n,)."""
        if self.name == "camelback":
            x, y = 4 * X[:, 0], 2 * X[:, 1]
            six = (4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + (-4 + 4 * y**2) * y**2
            return np.asarray(-six / 5)
        if self.name == "styblinski-tang":
            z = 8 * X
            total = (z**4 - 16 * z**2 + 5 * z).sum(axis=1)
            return np.asarray(-(total / 2 / (200 * self.dimension) + 0.5))
        z = (X / 0.75 + 0.5) * math.pi
        steps = np.arange(1, self.dimension + 1)
        michalewicz: Array = (np.sin(z) * np.sin(steps * z**2 / math.pi) ** 20).sum(axis=1)
        return michalewicz / self.dimension


BENCHMARKS = {
    "camelback": Benchmark("camelback", 2, (-1.1467, 0.20633)),
    "styblinski-tang-20": Benchmark("styblinski-tang", 20, (-0.525, -0.30416)),
    "michalewicz-10": Benchmark("michalewicz", 10, (-0.5, 0.96602)),
}
"""The functions of Table 1."""


def benchmark(name: str, rng: np.random.Generator, steps: int) -> DecisionProblem:
    """A function of Table 1: every round has 25 uniform points, and normal noise of 0.1."""
    function = BENCHMARKS[name]
    points = function.domain.sample(steps * _ARMS, rng)
    table = function(points).reshape(steps, _ARMS)
    shape = (steps, _ARMS, function.dimension)
    errors = rng.normal(scale=0.1, size=steps)
    return DecisionProblem(name, points.reshape(shape), table, errors, bernoulli=False)


_Centred = TypeVar("_Centred", bound=CentredStatistics)
_FINDINGS = FindingTable(__name__)


def default_features() -> FeatureMap:
    """28 eigenfeatures of the squared exponential, l = 1, on the ball of radius 2 in the plane."""
    return EigenFeatures(SquaredExponential(1.0), Ball(2.0, 2), 28)


def benchmark_features(name: str) -> FeatureMap:
    """For the functions of Table 1: additive quadrature features where there are many variables."""
    domain = BENCHMARKS[name].domain
    if domain.dimensions == 2:
        return EigenFeatures(SquaredExponential(0.2), domain, 64)
    line = Box((-0.5, 0.5), 1)
    part: FeatureMap = QuadratureFeatures(SquaredExponential(0.4), line, 8)
    if name.startswith("michalewicz"):
        part = EigenFeatures(SquaredExponential(0.08), line, 20)
    return AdditiveFeatures(part, domain.dimensions)


@dataclass(frozen=True)
class PrivateApproximateGPUCB(Study):
    """Base: approximate GP-UCB with changing decision sets, from noisy sums over users.

    A user brings a decision set and answers one arm of it; both are private. The others see what
    follows from the noisy sums of φφᵀ and of the rewards times φ.

    Attributes:
        epsilon: α of the paper.
        delta: β of the paper, a privacy parameter.
        steps: T, the number of users at most.
        reward_range: (low, high), public.
        feature_map: Φ, with ‖Φ‖ <= 1.
        noise: the least certified, or the paper's.
        matrix_weight: of φφᵀ against the centred reward times φ; 1/√8 costs nothing, and 0 leaves
            it out. The paper's noise has its own statistics, without weights.
        centred: whether rewards are centred at the middle of their range (tight noise).
        nonnegative_kernel: whether the kernel is known not to be negative, so that φᵀφ' is at least
            0 less the feature error; it matters where rewards are not centred.
        estimate: how V and θ follow from noisy sums. ``shifted`` is Algorithm 1, by the norm of the
            actual noise or, with the paper's noise, by Lemma 3.
        width: what the exploration bonus is a multiple of.
        width_multiplier: of the bonus. With ``theorem`` and 1 it is the theorem's.
        regularisation: λ of V, for ``projected`` and ``shifted``.
        noise_variance: ρ² of a reward in a range of length 1, at most ¼.
        prior_variance: of f in a range of length 1, for ``shrunk``.
        confidence: ζ, failure probability of the widths (no privacy parameter).
        norm_bound: B, bound of |f|.
        out_of_range: whether a reward outside the range is clipped or refused.
        refresh: share by which the number of rounds grows until V is factorised again.
    """

    default_data: ClassVar[str] = "bump"

    problem: ClassVar[type[DecisionProblem]] = DecisionProblem
    lemma_finding: ClassVar[tuple[str, str]]
    """What is wrong with the paper's noise, by ``findings.toml``, and of which invocation."""

    epsilon: Positive = 1.0
    delta: OpenProbability = 0.1
    steps: Count = 1024
    reward_range: Interval = (0.0, 1.0)
    feature_map: Annotated[FeatureMap, partial(validate.instance, FeatureMap)] = field(
        default_factory=default_features
    )
    noise: Noise = Noise.TIGHT
    matrix_weight: NonNegative = FREE_WEIGHT
    centred: bool = True
    nonnegative_kernel: bool = False
    estimate: Estimate = Estimate.SHIFTED
    width: Width = Width.POSTERIOR
    width_multiplier: NonNegative = 0.1
    regularisation: Positive = 1.0
    noise_variance: Positive = 0.25
    prior_variance: Positive = 0.25
    confidence: OpenProbability = 0.1
    norm_bound: Positive = 1.0
    out_of_range: OutOfRange = OutOfRange.CLIP
    refresh: NonNegative = 0.02

    # -- privacy ---------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """m, the number of features."""
        return self.feature_map.size

    @property
    @abstractmethod
    def statistics(self) -> Encoding:
        """What a user contributes to the sums."""

    def tight_statistics(self, kind: type[_Centred]) -> _Centred:
        """What a user contributes under tight noise, in that form."""
        floor = -self.feature_map.uniform_error if self.nonnegative_kernel else -1.0
        return kind(
            self.size,
            self.reward_range,
            matrix_weight=self.matrix_weight,
            centred=self.centred,
            least_product=max(-1.0, floor),
        )

    def findings(self) -> tuple[Finding, ...]:
        """The lemma's mistake, where its noise is used, and where the regret theorem is silent."""
        found = [] if self.noise is Noise.TIGHT else [_FINDINGS(*self.lemma_finding)]
        if self.out_of_range is OutOfRange.REFUSE:
            found.append(_FINDINGS("refusal-depends-on-data"))
        if self.width is not Width.THEOREM or self.width_multiplier != 1.0:
            found.append(
                off_theorem_finding(
                    f"The regret bound is not the paper's: the bonus is {self.width_multiplier:g} "
                    f"times the {self.width} width.",
                    "Set width to theorem and width_multiplier to 1 where the regret bound "
                    "matters.",
                )
            )
        return tuple(found)

    def not_covered(self) -> tuple[str, ...]:
        """What the claim leaves out."""
        return (
            "The protected user's own arm is chosen from this user's decision set: whoever sees "
            "the arm learns something about the set. The claim speaks of what all others see.",
            "That a user came, and when, is not hidden.",
            "A user who comes in several rounds is protected in each of them separately.",
            "The number of clipped rewards is not released; it stays with whoever holds raw data.",
            "The regret comes from the true means; a run shows it to the owner of the data alone.",
        )

    def audit_pairs(self) -> tuple[AuditPair, ...]:
        """Replacements of one user that move the statistics far, in two features."""
        low, high = self.reward_range
        pairs = (
            ([1.0, 0.0], high, [1.0, 0.0], low, "the same arm with the other extreme reward"),
            ([1.0, 0.0], high, [0.0, 1.0], high, "orthogonal arms with the same reward"),
            ([1.0, 0.0], high, [0.0, 1.0], low, "orthogonal arms with other rewards"),
        )
        return tuple(
            AuditPair({"features": x, "reward": y}, {"features": u, "reward": v}, why)
            for x, y, u, v, why in pairs
        )

    def contribution(self, data: Any) -> Array:
        """What one user contributes before any noise, in the first features alone.

        Args:
            data: ``{"features": [...], "reward": y}``; features that are left out are 0.

        Raises:
            InputError: if the data are malformed.
        """
        if not isinstance(data, dict) or set(data) != {"features", "reward"}:
            raise InputError("data must be a table with the fields 'features' and 'reward'.")
        phi = validate.real_array(features=data["features"])
        if phi.ndim != 1 or not 1 <= phi.size <= self.size:
            raise InputError(
                f"features has shape {phi.shape}; it must be a list of 1 to {self.size} numbers."
            )
        if (norm := float(np.linalg.norm(phi))) > 1 + 1e-9:
            raise InputError(f"features has norm {norm:.6g}; it must be at most 1.")
        return replace(self.statistics, size=len(phi)).encode(phi, self.gate()(data["reward"]))

    def modelled(self) -> Iterator[tuple[dict[str, Any], DecisionProblem]]:
        """A first user with either extreme reward, of whom all others have the only arm as well."""
        arms = np.tile(self._only_arm, (self.steps, 1, 1))
        low, high = self.reward_range
        table = np.full((self.steps, 1), low)
        others = DecisionProblem("one arm", arms, table, np.zeros(self.steps), bernoulli=False)
        for reward in (low, high):
            yield self.with_only_arm(reward), ReplacedUser.of(others, 0, None, reward)

    def with_only_arm(self, reward: float) -> dict[str, Any]:
        """What a user of :meth:`modelled` contributes, as :meth:`contribution` takes it."""
        return {"features": self.feature_map(self._only_arm)[0].tolist(), "reward": reward}

    @property
    def _only_arm(self) -> Array:
        middle = self.feature_map.domain.bounds.mean(axis=1)
        arm: Array = np.resize(middle, (1, self.feature_map.dimension))  # of a part, if additive
        return arm

    # -- learning --------------------------------------------------------------------------------

    def gate(self) -> RewardGate:
        """What keeps rewards within the public range."""
        return RewardGate(self.reward_range, self.out_of_range)

    def learner(self) -> Learner:
        """The estimator, in the units of the statistics' values."""
        paper = self.noise is not Noise.TIGHT
        low, high = self.reward_range
        scale = (high - low) ** 2 if paper else 1.0
        needs_error = self.width is Width.THEOREM
        return Learner(
            size=self.size,
            steps=self.steps,
            estimate=self.estimate,
            width=self.width,
            width_multiplier=self.width_multiplier,
            regularisation=self.regularisation,
            reward_variance=self.noise_variance * scale,
            prior_variance=self.prior_variance * scale,
            confidence=self.confidence,
            norm_bound=self.norm_bound,
            feature_error=self.feature_map.uniform_error if needs_error else 0.0,
            shift=self._paper_shift() if paper else None,
        )

    def _paper_shift(self) -> float | None:
        """Λ of the paper's lemma, with the paper's noise."""
        return None

    def load(self, source: str, rng: np.random.Generator) -> DecisionProblem:
        """``bump``, the synthetic problem of the paper, or a benchmark of its Table 1."""
        problems: dict[str, Callable[[], DecisionProblem]] = {
            "bump": lambda: bump(rng, self.steps),
            **{name: partial(benchmark, name, rng, self.steps) for name in BENCHMARKS},
        }
        return load_named(source, problems)

    def neighbours(self, data: DecisionProblem, rng: np.random.Generator) -> Iterator[Move]:
        """One user replaced: decision set, reward, or both; rewards within the range and beyond."""
        last = data.rounds - 1
        one, two, three = (int(turn) for turn in rng.integers(data.rounds, size=3))
        low, high = self.reward_range
        far = 1e3 * (high - low)
        opposite, single = -data.decision_set(0), data.decision_set(one)[:1]
        tries = (
            (0, opposite, low, "the opposite decision set and the least reward", False),
            (one, None, high, "the largest reward", False),
            (two, single, low, "another decision set of one arm and the least reward", False),
            (last, opposite, high, "another decision set and the largest reward", False),
            (0, None, high + far, "a reward far above the range", True),
            (three, opposite, low - far, "another decision set, a reward far below", True),
        )
        for turn, arms, reward, what, extreme in tries:
            other = ReplacedUser.of(data, turn, arms, reward)
            yield Move(other, f"the user of round {turn + 1} has {what}", extreme)

    def check_data(self, data: Any) -> DecisionProblem:
        """The data, if they are such a problem, and not too long."""
        problem: DecisionProblem = super().check_data(data)
        if problem.rounds > self.steps:
            raise InputError(
                f"data has {problem.rounds} rounds and steps is {self.steps}; declare more steps."
            )
        return problem

    def result(self, problem: DecisionProblem, found: list[int]) -> RunResult:
        """How many users came; and for the owner the regret of the arms that were chosen."""
        regret = problem.regret(found)
        owner = RunResult(
            summary={
                "final regret": float(regret[-1]),
                "expected regret of uniform play": problem.uniform_regret(),
            },
            series={"cumulative regret": regret.tolist()},
        )
        return RunResult(self.summary(problem.name, len(found)), owner=owner)

    def summary(self, problem: str, users: int) -> dict[str, Any]:
        """What ran, on how many users of what."""
        return {
            "algorithm": type(self).__name__,
            "problem": problem,
            "users": users,
            "features": self.size,
        }
