"""Policies: whom to ask next, and what responses mean. Algorithms 1 to 3 of Zhou & Tan 2021.

A policy meets rewards through :class:`Users` alone, who answer over a channel: the ledger's door
under local trust, or in the clear for a comparator. Beside the paper's three stands
:func:`ask_ahead`, a Bayesian learner for few and noisy responses, without widths: where a response
says little, confidence widths ask for more responses than there will be. It counts instead what a
choice is worth: if half, a quarter, an eighth … of the rounds that are left ask about a point, what
do these rounds earn, and what do the others, which then play what looks best? That is a lookahead
with several equal measurements (Frazier and Powell 2010, *Paradoxes in learning and the marginal
value of information*), with what is earned on the way counted (Ryzhov, Powell and Frazier 2012,
*The knowledge gradient algorithm for a general class of online learning problems*). Nothing of it
is fitted and nothing is to be tuned: all numbers stand before there are data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np

from dpaudit.base.errors import InputError
from dpaudit.project import RunResult
from private_bo.gp import (
    FiniteDomain,
    FinitePosterior,
    Kernel,
    NystromEmbedder,
    NystromPosterior,
    Storage,
    TableKernel,
    oversampling,
)
from private_bo.gp.types import Array, Indices, single_threaded
from private_bo.problems import Arms, BanditProblem, RewardSource


def theorem_plays_per_epoch(horizon: int, confidence: float) -> int:
    """The k = ⌈24 ln(4eT/δ)⌉ of Theorem 4.

    >>> theorem_plays_per_epoch(1000, 0.1)
    279
    """
    return math.ceil(24.0 * math.log(4.0 * math.e * horizon / confidence))


@dataclass(frozen=True)
class Constants:
    """What thresholds and widths follow from: public numbers, in the units of the reward.

    Attributes:
        horizon: T, the number of responses at most.
        B: bound of |f|.
        R: bound of the noise of a reward, infinite if there is none.
        v: bound of E y² of a response y.
        c: bound of E (y − f)².
        confidence: δ.
        regularisation: λ.
        width_multiplier: factor on β.
        laplace_scale: ℒ = 2(B+R)/ε of the noise that makes a response private; 0 without any.
        accuracy: ε̃ of the Nyström dictionary.
        moment: α in (0, 1]; by Lyapunov's inequality E|y|^{1+α} <= v^{(1+α)/2}, likewise c.
    """

    horizon: int
    B: float
    R: float
    v: float
    c: float
    confidence: float
    regularisation: float
    width_multiplier: float
    laplace_scale: float = 0.0
    accuracy: float = 0.1
    moment: float = 1.0


@dataclass(frozen=True)
class Schedule:
    """Base of all schedules.

    Attributes:
        constants: what the schedule follows from.
    """

    constants: Constants

    @property
    def oversampling(self) -> float:
        """The q = 6ρ ln(4T/δ)/ε̃² of the Nyström embedding (Theorems 2 and 4)."""
        public = self.constants
        return oversampling(public.accuracy, public.horizon, public.confidence)

    def scaled(self, bias: float, deviation: float) -> float:
        """The width bias + deviation/√λ, times the multiplier."""
        public = self.constants
        return public.width_multiplier * (bias + deviation / math.sqrt(public.regularisation))

    @property
    def feature_bias(self) -> float:
        """B (1 + 1/√(1 - ε̃)), the width that approximate features cost (Theorems 2 and 4)."""
        return self.constants.B * (1.0 + 1.0 / math.sqrt(1.0 - self.constants.accuracy))


class LaplaceFeatureTruncation(Schedule):
    """Theorem 2 (LDP-ATA-GP-UCB): v = B² + R² + 8(B+R)²/ε²."""

    def _log(self, m: int) -> float:
        """ln(4 m_t T/δ); an empty dictionary has no feature to truncate and counts as one."""
        public = self.constants
        return math.log(4.0 * max(m, 1) * public.horizon / public.confidence)

    def threshold(self, t: int, m: int) -> float:
        """b_t = √(v / ln(4 m_t T/δ))."""
        return math.sqrt(self.constants.v / self._log(m))

    def width(self, t: int, m: int) -> float:
        """β_{t+1} = B(1 + 1/√(1 - ε̃)) + 4 √(ln(4 m_t T/δ) v m_t / λ)."""
        return self.scaled(self.feature_bias, 4.0 * math.sqrt(self._log(m) * self.constants.v * m))


class LaplaceTruncation(Schedule):
    """Theorem 3 (LDP-TGP-UCB): K = v = B² + R² + 2ℒ²; ln t stands for ln max(t, 1)."""

    def threshold(self, t: int) -> float:
        """b_t = B + R + ℒ ln t."""
        public = self.constants
        return public.B + public.R + public.laplace_scale * math.log(max(t, 1))

    def width(self, t: int, gain: float) -> float:
        """β_{t+1} = B + (2√2/√λ) b_t √(γ_t + ln(1/δ)) + √(K(ln t + 1)/λ)."""
        public = self.constants
        deviation = math.sqrt(8.0 * (gain - math.log(public.confidence))) * self.threshold(t)
        truncated = math.sqrt(public.v * (math.log(max(t, 1)) + 1.0))
        return self.scaled(public.B, deviation + truncated)


class MedianOfMeans(Schedule):
    """Theorem 4 (MoMA-GP-UCB), and Corollary 1 with c = R² + 8(B+R)²/ε² (LDP-MoMA-GP-UCB)."""

    def width(self, n: int, m: int) -> float:
        """β_{n+1} = B(1 + 1/√(1 - ε̃)) + 3γ/√λ.

        γ = (9 m_n c_α)^{1/(1+α)} n^{(1-α)/(2(1+α))} with c_α = c^{(1+α)/2} (Lemma 10).
        """
        public = self.constants
        order = 1.0 + public.moment
        growth = math.pow(n, (1.0 - public.moment) / (2.0 * order))
        gamma = math.pow(9.0 * m, 1.0 / order) * math.sqrt(public.c) * growth
        return self.scaled(self.feature_bias, 3.0 * gamma)


class FeatureTruncation(Schedule):
    """ATA-GP-UCB (Chowdhury & Gopalan 2019, Section 5)."""

    @property
    def oversampling(self) -> float:
        """The q = ln T/ε̃², at least 1/ε̃² (for T <= 2)."""
        return max(math.log(self.constants.horizon), 1.0) / self.constants.accuracy**2

    def _log(self, m: int) -> float:
        """ln((m + 1) T), which is 0 for an empty dictionary at T = 1: at least ln 2."""
        return math.log(max((m + 1) * self.constants.horizon, 2))

    def _growth(self, t: int) -> float:
        """t^{(1-α)/(2(1+α))}."""
        moment = self.constants.moment
        return math.pow(t, (1.0 - moment) / (2.0 * (1.0 + moment)))

    def threshold(self, t: int, m: int) -> float:
        """b_t = t^{(1-α)/(2(1+α))} √v / ln((m+1)T)^{1/(1+α)}."""
        root = math.pow(self._log(m), 1.0 / (1.0 + self.constants.moment))
        return self._growth(t) * math.sqrt(self.constants.v) / root

    def width(self, t: int, m: int) -> float:
        """β_{t+1} = B√λ + √(m v) ln((m+1)T)^{α/(1+α)} t^{(1-α)/(2(1+α))}."""
        public = self.constants
        tail = math.pow(self._log(m), public.moment / (1.0 + public.moment)) * self._growth(t)
        deviation = math.sqrt(m * public.v) * tail
        return public.width_multiplier * (public.B * math.sqrt(public.regularisation) + deviation)


class RewardTruncation(Schedule):
    """TGP-UCB (Chowdhury & Gopalan 2019, Section 5)."""

    def threshold(self, t: int) -> float:
        """b_t = t^{1/(2(1+α))} √v."""
        public = self.constants
        return math.pow(t, 0.5 / (1.0 + public.moment)) * math.sqrt(public.v)

    def width(self, t: int, gain: float) -> float:
        """β_{t+1} = B√λ + b_t √ln t, with ln 1 = 0 for the first."""
        public = self.constants
        deviation = self.threshold(t) * math.sqrt(math.log(max(t, 1)))
        return public.width_multiplier * (public.B * math.sqrt(public.regularisation) + deviation)


class SubGaussian(Schedule):
    """GP-UCB, without truncation (Durand, Maillard & Pineau 2018, Theorem 2).

    The scale of the noise is R, or √c where the noise is unbounded: no theorem then.
    """

    def threshold(self, t: int) -> float:
        """Infinite: nothing is truncated."""
        return math.inf

    def width(self, t: int, gain: float) -> float:
        """β_{t+1} = B + R √(2(γ_t + ln(1/δ))/λ)."""
        public = self.constants
        noise = public.R if math.isfinite(public.R) else math.sqrt(public.c)
        return self.scaled(public.B, noise * math.sqrt(2.0 * (gain - math.log(public.confidence))))


RewardTruncations: TypeAlias = LaplaceTruncation | RewardTruncation | SubGaussian
"""Of :func:`~private_bo.local.policies.truncated_gp_ucb`: b_t and β_{t+1} by t and the gain."""
FeatureTruncations: TypeAlias = LaplaceFeatureTruncation | FeatureTruncation
"""Of :func:`~private_bo.local.policies.adaptively_truncated_gp_ucb`: by t and m."""


Channel: TypeAlias = Callable[[str, Any], float]
"""What happens to a user's raw reward on its way to the learner: (user, reward) -> response."""


def clear_channel(user: str, reward: float) -> float:
    """The channel of the non-private algorithms: the learner sees the reward."""
    try:
        if math.isfinite(reward):
            return reward
    except TypeError:
        pass
    raise InputError(f"reward of {user!r} is {reward!r:.60}; it must be one finite number.")


@dataclass(frozen=True, eq=False)
class Outcome:
    """What an algorithm did and believes in the end.

    Attributes:
        choices: row number of the point of every response, (T,).
        mean: posterior mean of every point, (n,), in the units of the reward.
    """

    choices: Indices
    mean: Array

    @property
    def recommended(self) -> int:
        """The played point of largest posterior mean, the first of equals."""
        played = np.unique(self.choices)
        return int(played[self.mean[played].argmax()])


@dataclass(eq=False)
class Users:
    """The users of one problem, as an algorithm meets them.

    Attributes:
        problem: where and whom to ask.
        channel: what a reward passes before the algorithm sees it.
        rng: source of the rewards; it draws no privacy noise.
        plays: how many users are asked about a point in a row.
    """

    problem: Arms
    channel: Channel
    rng: np.random.Generator
    plays: int = 1
    _choices: list[int] = field(init=False, repr=False, default_factory=list)
    _unlimited: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        source = type(self.problem.rewards)
        self._unlimited = source.available is RewardSource.available

    def choose(self, scores: Array) -> int:
        """The point of largest score, the first of equals, among those with enough users left.

        Raises:
            InputError: if no point has enough.
        """
        if self._unlimited:
            return int(scores.argmax())
        playable = self.problem.rewards.available(self.problem.domain.size, self.plays)
        if not playable.any():
            raise InputError(
                f"steps is too large for {self.problem.name!r}: after {len(self._choices)} answers "
                f"no point has {self.plays} more; it must be smaller."
            )
        return int(np.where(playable, scores, -np.inf).argmax())

    def ask(self, index: int) -> float:
        """One user's response about a point, after the channel."""
        answer = self.problem.respond(index, self.rng)
        response = self.channel(answer.user, answer.value)
        self._choices.append(index)
        return response

    def outcome(self, mean: Array) -> Outcome:
        """The record of the run, given the final posterior mean."""
        return Outcome(np.array(self._choices, dtype=np.intp), np.array(mean))


def truncated_gp_ucb(
    users: Users, schedule: RewardTruncations, rng: np.random.Generator
) -> Outcome:
    """Play T rounds on the exact posterior; each response is truncated once, on arrival.

    γ_t is the realised gain ½ ln det(I + K_t/λ), which the proof needs and which is at most the
    maximum over all choices of t points. Lines 9-10 of the text write μ̂, σ̂ for the μ̃, σ of line 6.

    Args:
        users: whom to ask.
        schedule: T, λ, thresholds and widths.
        rng: not used: nothing is drawn.
    """
    problem, public = users.problem, schedule.constants
    posterior = FinitePosterior.of(problem.domain, problem.kernel, public.regularisation)
    for t in range(1, public.horizon + 1):
        beta = schedule.width(t - 1, posterior.information_gain)  # lines 4-5
        x = users.choose(posterior.upper_confidence(beta))  # line 6
        response = users.ask(x)  # line 7
        kept = response if abs(response) <= schedule.threshold(t) else 0.0  # line 8
        posterior.update(x, kept)  # lines 9-10
    return users.outcome(posterior.mean)


def adaptively_truncated_gp_ucb(
    users: Users, schedule: FeatureTruncations, rng: np.random.Generator
) -> Outcome:
    """Play T rounds; every round truncates the whole history anew, feature by feature.

    Points repeat, so the columns of Ṽ_t^{-1/2} Φ̃_tᵀ are those of the domain's n points, gathered
    by the history. For Ṽ^{-1/2} stands L⁻¹ with Ṽ = L Lᵀ: see
    :class:`~private_bo.gp.NystromPosterior`.

    Args:
        users: whom to ask.
        schedule: T, λ, oversampling, thresholds and widths.
        rng: source of the dictionaries, which have no privacy role.
    """
    steps, regularisation = schedule.constants.horizon, schedule.constants.regularisation
    domain, kernel = users.problem.domain, users.problem.kernel
    embedder = NystromEmbedder(domain, kernel)
    counts = np.zeros(domain.size, dtype=np.intp)
    chosen = np.empty(steps, dtype=np.intp)
    y, b = np.empty(steps), np.empty(steps)
    m, mean, variance = 0, np.zeros(domain.size), kernel.diagonal(domain.points)  # line 2
    for t in range(1, steps + 1):
        beta = schedule.width(t - 1, m)
        x = users.choose(mean + beta * np.sqrt(variance))  # line 4
        chosen[t - 1], y[t - 1] = x, users.ask(x)  # line 5
        counts[x] += 1
        embedding = embedder.sample(counts, variance, schedule.oversampling, rng)
        m = embedding.dimension  # line 6
        posterior = NystromPosterior.fit(embedding, counts, regularisation)  # line 7
        b[t - 1] = schedule.threshold(t, m)
        terms = posterior.whitened[:, chosen[:t]] * y[:t]  # line 8: u_{i,τ} y_τ, (m, t)
        terms[np.abs(terms) > b[:t]] = 0.0
        truncated = terms.sum(axis=1)  # line 9
        mean = posterior.whitened.T @ truncated  # lines 10-11
        variance = posterior.variance  # line 12
    return users.outcome(mean)


def median_of_means_gp_ucb(
    users: Users, schedule: MedianOfMeans, rng: np.random.Generator
) -> Outcome:
    """Play N = ⌊T/k⌋ epochs of k rounds each (line 3); ``users.plays`` is k.

    The k right-hand sides of line 10 are kept as sums of the responses by point, and all k
    estimates share one Cholesky factor Ṽ = L Lᵀ: with z_j = L⁻¹ Φ̃ᵀ Y_j they are θ_j = L⁻ᵀ z_j, so
    that ‖θ_j - θ_s‖_Ṽ = ‖z_j - z_s‖ and φ̃(x)ᵀ θ_j = (L⁻¹ φ̃(x))ᵀ z_j.

    Args:
        users: whom to ask.
        schedule: T, λ, oversampling and widths.
        rng: source of the dictionaries, which have no privacy role.
    """
    regularisation = schedule.constants.regularisation
    domain, kernel = users.problem.domain, users.problem.kernel
    embedder = NystromEmbedder(domain, kernel)
    counts = np.zeros(domain.size, dtype=np.intp)
    sums = np.zeros((domain.size, users.plays))
    m, mean, variance = 0, np.zeros(domain.size), kernel.diagonal(domain.points)  # line 2
    for n in range(1, schedule.constants.horizon // users.plays + 1):  # line 4
        beta = schedule.width(n - 1, m)
        x = users.choose(mean + beta * np.sqrt(variance))  # line 5
        sums[x] += [users.ask(x) for _ in range(users.plays)]  # line 6
        counts[x] += 1
        embedding = embedder.sample(counts, variance, schedule.oversampling, rng)  # line 7
        m = embedding.dimension  # line 8
        posterior = NystromPosterior.fit(embedding, counts, regularisation)  # line 9
        z = posterior.whitened @ sums  # line 10
        central = central_estimate(z)  # lines 11-12
        mean = posterior.whitened.T @ z[:, central]  # line 13
        variance = posterior.variance  # line 14
    return users.outcome(mean)


def central_estimate(z: Array) -> int:
    """k* = argmin_j median_{s≠j} ‖z_j - z_s‖ of the columns of ``z`` (m, k), the first of equals.

    >>> central_estimate(np.array([[0.0, 1.0, 1.5, 90.0]]))
    1
    """
    from scipy.spatial.distance import cdist

    k = z.shape[1]
    if k == 1 or z.shape[0] == 0:
        return 0
    distances = cdist(z.T, z.T)
    others = distances[~np.eye(k, dtype=np.bool_)].reshape(k, k - 1)
    return int(np.median(others, axis=1).argmin())


_PATIENCE = 50
"""After t responses a choice is made anew every t/50 responses: they hardly change it sooner."""
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(8)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def prior_covariance(domain: FiniteDomain, kernel: Kernel) -> Array:
    """Covariance (n, n) of the means, on a scale where the public range is [-1, 1].

    A mean that may be anywhere in the range has the variance 1/3. Whether the points differ from
    the middle together, as the kernel says, or each on its own, nobody knows before there are data:
    each of the three has a third of the variance.
    """
    covariance = domain.kernel_matrix(kernel)
    shape = covariance / covariance.diagonal().mean()
    return np.asarray((1.0 + shape + np.eye(domain.size)) / 9.0)


def expected_earnings(mean: Array, covariance: Array, variance: float, left: int) -> Array:
    """What all rounds that are left earn if some of them ask about a point: one value a point.

    After r responses about x, the means are mean + s Z with Z standard normal and
    s = cov(·, x)/√(var(x) + variance/r), so that the best of them earns E max(mean + s Z) a round:
    a sum over the 8 nodes of Gauss and Hermite. Of r = ⌈left/2⌉, ⌈left/4⌉, …, 1 the best counts.

    Args:
        mean: of every point, (n,).
        covariance: of the means, (n, n).
        variance: of a response given the mean.
        left: rounds, at least 1.
    """
    own = np.maximum(covariance.diagonal(), 0.0)
    earned = np.full(own.size, -np.inf)
    for rounds in {math.ceil(left / 2**halvings) for halvings in range(1, left.bit_length() + 1)}:
        shifts = covariance / np.sqrt(own + variance / rounds)
        best = np.zeros_like(own)
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            best += weight * (mean[:, None] + node * shifts).max(axis=0)
        np.maximum(earned, rounds * mean + (left - rounds) * best, out=earned)
    return earned


def ask_ahead(users: Users, steps: int, variance: float) -> Outcome:
    """Ask ``steps`` users, each about the point that is worth most.

    Args:
        users: whom to ask; their responses are unbiased, on a scale where the range is [-1, 1].
        steps: T.
        variance: bound of the variance of a response.
    """
    problem = users.problem
    prior = TableKernel(prior_covariance(problem.domain, problem.kernel))
    points = FiniteDomain.indices(problem.domain.size)
    belief = FinitePosterior.of(points, prior, variance, Storage.COVARIANCE)
    values, choice = np.zeros(points.size), 0
    for t in range(steps):
        if t == choice:
            values = expected_earnings(belief.mean, belief.covariance, variance, steps - t)
            choice = t + max(1, t // _PATIENCE)
        x = users.choose(values)
        belief.update(x, users.ask(x))
    return users.outcome(belief.mean)


_Schedule = TypeVar("_Schedule", bound=Schedule)


@dataclass(frozen=True)
class Policy(Generic[_Schedule]):
    """A learner with its schedule: all of an algorithm but the way that rewards come to it.

    Attributes:
        learner: plays all rounds, given users, schedule and a generator without privacy role.
        schedule: the thresholds and widths, of public constants.
    """

    learner: Callable[[Users, _Schedule, np.random.Generator], Outcome]
    schedule: Callable[[Constants], _Schedule]

    def play(self, users: Users, constants: Constants, rng: np.random.Generator) -> Outcome:
        """Play every round, on one thread.

        Args:
            users: whom to ask.
            constants: what the schedule follows from.
            rng: source of the dictionaries.
        """
        with single_threaded():
            return self.learner(users, self.schedule(constants), rng)


class Epochs:
    """Mixin of MoMA-GP-UCB, which asks k users about each point (Algorithm 3, line 3).

    The dataclass has the fields ``steps`` (T), ``confidence`` (δ of the regret bound) and
    ``plays_per_epoch`` (k, or None for the theorem's).
    """

    if TYPE_CHECKING:  # at run time the dataclass's own annotations, with their checks, count
        steps: int
        confidence: float
        plays_per_epoch: int | None

    @property
    def plays(self) -> int:
        """k, as given or as Theorem 4 has it."""
        if self.plays_per_epoch is not None:
            return self.plays_per_epoch
        return theorem_plays_per_epoch(self.steps, self.confidence)

    @property
    def epochs(self) -> int:
        """N = ⌊T/k⌋.

        Raises:
            InputError: if there is not one whole epoch.
        """
        if self.steps < self.plays:
            raise InputError(
                f"steps is {self.steps}; it must be at least the number of plays per epoch, "
                f"{self.plays}."
            )
        return self.steps // self.plays


def run_result(
    algorithm: str, problem: Arms, outcome: Outcome, settings: Mapping[str, float]
) -> RunResult:
    """The recommendation; and for the owner the regret, where the truth is known.

    Args:
        algorithm: its name.
        problem: where it ran.
        outcome: what it did.
        settings: named settings to show beside the result.
    """
    recommended = outcome.recommended
    summary = {
        "algorithm": algorithm,
        "problem": problem.name,
        "responses": int(outcome.choices.size),
        "recommended": _label(problem, recommended),
        "estimated mean of the recommended": float(outcome.mean[recommended]),
    }
    owner = None
    if isinstance(problem, BanditProblem):
        owner = _regret(problem, outcome.choices, recommended)
    return RunResult(summary=summary | dict(settings), owner=owner)


def _regret(problem: BanditProblem, choices: Indices, recommended: int) -> RunResult:
    """What the true means tell of a run."""
    regret, best = problem.regret(choices), problem.best
    return RunResult(
        summary={
            "true best": _label(problem, best),
            "gap of the recommended to the best": float(problem.f[best] - problem.f[recommended]),
            "final regret": float(regret[-1]),
        },
        series={"cumulative regret": regret.tolist()},
    )


def _label(problem: Arms, index: int) -> str:
    """The point's name, or its coordinates."""
    if problem.labels:
        return problem.labels[index]
    return ", ".join(f"{x:g}" for x in problem.domain.points[index])
