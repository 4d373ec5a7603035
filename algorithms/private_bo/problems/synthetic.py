"""Random functions from a kernel's span (Zhou & Tan 2021, Section 6)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Positive
from private_bo.gp import FiniteDomain, Kernel
from private_bo.gp.types import Array
from private_bo.problems.base import BanditProblem, Response, RewardSource, fresh_user


class Noise(Checked, ABC):
    """A symmetric noise law with public bounds."""

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> float:
        """One draw of the noise."""

    @property
    @abstractmethod
    def bound(self) -> float:
        """R with |noise| <= R, possibly infinite."""

    @property
    @abstractmethod
    def second_moment(self) -> float:
        """c, an upper bound of the variance."""


@dataclass(frozen=True)
class UniformNoise(Noise):
    """Uniform on [-R, R]; as in the paper its second moment is bounded by R² (it is R²/3).

    Attributes:
        half_width: R > 0.

    Raises:
        InputError: if ``half_width`` is not positive and finite.
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

    Raises:
        InputError: if ``degrees`` is not a finite number above 2.
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
    def bound(self) -> float:
        """Infinite: the law has no bound."""
        return math.inf

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
