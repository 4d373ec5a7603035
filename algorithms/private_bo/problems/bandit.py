"""Bandit problems: a finite domain, its true means, and the users who answer.

Beside them stand their neighbours, in which one user's reward is another, and random functions from
a kernel's span (Zhou & Tan 2021, Section 6).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Self

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Finite, Natural, Positive
from private_bo.gp import FiniteDomain, Kernel
from private_bo.gp.types import Array, Indices, array_of


@dataclass(frozen=True)
class Response:
    """One user's raw answer, before any privacy mechanism.

    Attributes:
        user: identifier of the person whose datum this is; a ledger charges releases to it.
        value: the raw reward, in the units of the problem's means; in a sealed run a handle of it.
    """

    user: str
    value: Any


class RewardSource(ABC):
    """Whom a problem asks. Only sources of finitely many real people have state."""

    @abstractmethod
    def respond(self, index: int, rng: np.random.Generator) -> Response:
        """Ask one user about the point ``index``, which the problem has checked."""

    def available(self, size: int, answers: int = 1) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which of the ``size`` points have so many answers left."""
        return np.ones(size, dtype=np.bool_)

    def reset(self) -> None:  # noqa: B027 - only sources with state override it
        """Forget who has answered; nothing to do where every round has a fresh user."""


def fresh_user(rng: np.random.Generator) -> str:
    """An identifier for a user who answers once, drawn from 2^63 (so reproducible with ``rng``).

    A collision, of probability below 1e-10 over 40 000 rounds, could only overcharge.
    """
    return f"user-{int(rng.integers(2**63)):016x}"


@dataclass(frozen=True, eq=False)
class RecordedRewards(RewardSource):
    """Fresh simulated users, each with a value drawn from those recorded for the point.

    The recorded values are the population, sampled with replacement; their tails are the data's
    own. Nobody's own value is asked for twice, because the users are simulated: whoever deploys
    on the recorded people themselves must charge each of them for every answer.

    Attributes:
        values: recorded rewards, one array a point.
    """

    values: Sequence[Array] = field(repr=False)

    def respond(self, index: int, rng: np.random.Generator) -> Response:
        """A fresh user with one of the recorded rewards of the point."""
        recorded = self.values[index]
        return Response(fresh_user(rng), float(recorded[rng.integers(recorded.size)]))


@dataclass(frozen=True, eq=False)
class Arms(Checked):
    """What a policy may know of a problem, and whom it asks.

    Attributes:
        name: what the problem is called in reports.
        domain: the n points.
        kernel: the prior covariance that algorithms use.
        rewards: whom the problem asks.
        labels: names of the points, or empty.
    """

    name: str
    domain: FiniteDomain
    kernel: Kernel
    rewards: RewardSource = field(repr=False, kw_only=True)
    labels: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def available(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which points somebody can still be asked about, (n,)."""
        return self.rewards.available(self.domain.size)

    def respond(self, index: int, rng: np.random.Generator) -> Response:
        """Ask one user about a point.

        Args:
            index: row number of the point, 0 <= index < n.
            rng: source of the reward; it draws no privacy noise.

        Raises:
            InputError: if there is no such point, or nobody is left to ask about it.
        """
        validate.integer_at_least(0, self.domain.size - 1, index=index)
        return self.rewards.respond(index, rng)

    def reset(self) -> None:
        """Make everybody available again, as before the first round of a new trial."""
        self.rewards.reset()


@dataclass(frozen=True, eq=False)
class BanditProblem(Arms):
    """A finite-armed problem with known truth, for measuring regret.

    Fields as in the base class, and:

    Attributes:
        f: true mean reward of every point, (n,), read-only.
        B: bound of |f|. The theorems want a bound of the RKHS norm of f; the experiments of the
            paper use that of |f|, and so does this field.
        R: bound of the noise |y - f|, infinite if there is none.
        v: bound of E y².
        c: bound of E (y - f)².
        bounds_are_public: whether B, R, v and c are public constants. If not, they are statistics
            of the private data itself, and a mechanism calibrated by them has no proof.
    """

    f: Annotated[Array, array_of("n")] = field(repr=False)
    B: float
    R: float
    v: float
    c: float
    bounds_are_public: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.f) != self.domain.size:
            raise InputError(
                f"f has shape {self.f.shape}; it must hold one mean for each of the "
                f"{self.domain.size} points."
            )

    @property
    def best(self) -> int:
        """Row number of the point of largest mean, the first of equals."""
        return int(self.f.argmax())

    def regret(self, choices: Sequence[int] | Indices) -> Array:
        """Cumulative regret Σ_{s<=t} f(x*) - f(x_s) after every choice, (T,)."""
        chosen = np.asarray(choices, dtype=np.intp)
        return np.asarray(np.cumsum(self.f[self.best] - self.f[chosen]))


_SHARE = 0.01
"""Of one user in a true mean."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ReplacedAnswer(BanditProblem):
    """The same problem, but for the reward of one user from some round on.

    Who is asked does not change, as long as the same points are asked for. The true means are made
    of rewards, and so move towards the new one. Fields as in the base class, and:

    Attributes:
        turn: the user is the one who gives this answer, the first being 0.
        value: what that user answers in this round, and whenever asked again.

    >>> from private_bo.gp import SquaredExponential
    >>> from private_bo.problems import UniformNoise, synthetic
    >>> problem = synthetic(SquaredExponential(0.2), UniformNoise(), np.random.default_rng(0))
    >>> other, rng = ReplacedAnswer.of(problem, turn=1, value=9.0), np.random.default_rng(0)
    >>> [round(other.respond(5, rng).value, 2) for _ in range(3)]
    [-0.31, 9.0, 0.97]
    """

    turn: Natural
    value: Finite
    _heard: list[str] = field(init=False, repr=False, default_factory=list)

    @classmethod
    def of(cls, problem: BanditProblem, *, turn: int, value: float) -> Self:
        """The neighbour of that problem."""
        given = {each.name: getattr(problem, each.name) for each in fields(BanditProblem)}
        means = problem.f + _SHARE * (value - problem.f)
        return cls(**{**given, "f": means}, turn=turn, value=value)

    def respond(self, index: int, rng: np.random.Generator) -> Response:
        """Ask one user about a point; as the base class."""
        answer = super().respond(index, rng)
        self._heard.append(answer.user)
        if len(self._heard) > self.turn and answer.user == self._heard[self.turn]:
            return replace(answer, value=self.value)
        return answer

    def reset(self) -> None:
        """Make everybody available again."""
        super().reset()
        self._heard.clear()


class Noise(Checked, ABC):
    """A symmetric noise law with public bounds."""

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> float:
        """One draw of the noise."""

    @property
    def bound(self) -> float:
        """R with |noise| <= R; infinite where a law has none."""
        return math.inf

    @property
    @abstractmethod
    def second_moment(self) -> float:
        """c, an upper bound of the variance."""


@dataclass(frozen=True)
class UniformNoise(Noise):
    """Uniform on [-R, R]; as in the paper its second moment is bounded by R² (it is R²/3).

    Attributes:
        half_width: R > 0.
    """

    half_width: Positive = 1.0

    def draw(self, rng: np.random.Generator) -> float:
        """One draw from [-R, R]."""
        return float(rng.uniform(-self.half_width, self.half_width))

    @property
    def bound(self) -> float:
        """R, the half width."""
        return self.half_width

    @property
    def second_moment(self) -> float:
        """R², an upper bound of the variance R²/3."""
        return self.half_width**2


@dataclass(frozen=True)
class StudentNoise(Noise):
    """Student's t, whose tails are heavy; the paper has 3 degrees of freedom.

    Attributes:
        degrees: degrees of freedom, above 2 so that the variance is finite.
    """

    degrees: Positive = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.degrees <= 2.0:
            raise InputError(
                f"degrees is {self.degrees!r}; it must be above 2, for a finite variance."
            )

    def draw(self, rng: np.random.Generator) -> float:
        """One draw of Student's t."""
        return float(rng.standard_t(self.degrees))

    @property
    def second_moment(self) -> float:
        """The variance, degrees/(degrees - 2)."""
        return self.degrees / (self.degrees - 2.0)


@dataclass(frozen=True, eq=False)
class _NoisyMeans(RewardSource):
    means: Array = field(repr=False)
    noise: Noise

    def respond(self, index: int, rng: np.random.Generator) -> Response:
        """A fresh user's mean reward with noise."""
        user = fresh_user(rng)
        return Response(user, float(self.means[index]) + self.noise.draw(rng))


def synthetic(
    kernel: Kernel, noise: Noise, rng: np.random.Generator, domain: FiniteDomain | None = None
) -> BanditProblem:
    """A function f = Σ_i a_i k(., x_i)/max|f| with a_i uniform on [-1, 1], so that B = 1.

    The bounds are public: f is normalised by its construction and the noise law is known.

    Args:
        kernel: the covariance, also the prior that algorithms are given.
        noise: law of y - f.
        rng: source of the coefficients.
        domain: the points x_i; by default 0.01, 0.02, ..., 1.00.

    >>> from private_bo.gp import SquaredExponential
    >>> rng = np.random.default_rng(1)
    >>> problem = synthetic(SquaredExponential(0.2), StudentNoise(), rng)
    >>> problem.B, problem.R, problem.v, problem.c
    (1.0, inf, 4.0, 3.0)
    """
    points = FiniteDomain.grid(100) if domain is None else domain
    means = points.kernel_matrix(kernel) @ rng.uniform(-1.0, 1.0, points.size)
    means /= np.abs(means).max()
    return BanditProblem(
        name="synthetic",
        domain=points,
        kernel=kernel,
        f=means,
        B=1.0,
        R=noise.bound,
        v=1.0 + noise.second_moment,
        c=noise.second_moment,
        bounds_are_public=True,
        rewards=_NoisyMeans(means, noise),
    )
