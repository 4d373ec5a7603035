"""Secret sampling: the interface of every scheme, the two directed pairs, and their moments.

A sampling scheme takes part in every accountant once it is registered with
``amplification.register``, for the relations for which its amplification is proved.

Whether a unit joins or leaves the data costs the same for a symmetric pair, but not for a sampled
one. An invocation therefore has two directed pairs, *remove* and *add*; each composes with its own
kind, and a guarantee is the worse of the two.

*Moments*, by quadrature over the loss before sampling. With L = ln dP/dQ of the base pair, sampling
with probability q turns the likelihood ratio into r = 1 + q(e^L − 1). All moments are written as
E_Q[r^α] = 1 + E_Q[r^α − 1 − α(r − 1)], which holds as E_Q[r] = 1: every term is positive, so that
tiny divergences keep their relative precision.

"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, singledispatch
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.base.errors import UnsupportedError
from dpaudit.base.fields import Checked, OpenProbability
from dpaudit.mechanisms import DominatingPair, FinitePair
from dpaudit.mechanisms.pairs import Floats
from dpaudit.mechanisms.rounding import as_float, up
from dpaudit.plan import Invocation, Sampling

SAFETY = 1e-11
"""Relative slack for rounding and quadrature, whose errors are below 1e-12."""


def log_ratio(losses: ArrayLike, rate: float) -> Floats:
    """Ln(1 + q(e^L − 1)) for any L, without overflow or cancellation."""
    losses = np.asarray(losses, dtype=np.float64)
    plain: Floats = np.log1p(rate * np.expm1(np.minimum(losses, 700.0)))
    if not (losses > 700).any():
        return plain
    large = losses + np.log(rate + (1 - rate) * np.exp(-np.maximum(losses, 0.0)))
    return np.where(losses > 700, large, plain)


def log_moment(orders: Floats, log_ratios: Floats, log_base: Floats) -> Floats:
    """Ln(1 + Σ base (r^α − 1 − α(r − 1))) at each order.

    With c = α − 1 and l = ln r the term is r (e^(cl) − 1 − c(1 − e^−l)), a series where l is small.
    """
    if not log_ratios.size:  # no loss but 0: nothing is released
        return np.zeros(len(orders))
    c = (orders - 1)[:, None]
    l = log_ratios[None, :]  # noqa: E741
    step = c * l
    plainly = float(step.max()) <= 600 and float(log_ratios.min()) >= -30
    with np.errstate(over="ignore"):
        plain = np.expm1(np.minimum(step, 600.0 if plainly else 30.0))
        plain += c * np.expm1(-l)
    small = np.maximum(np.abs(step), np.abs(l)) < 1e-3
    if small.any():
        series = c * l * l / 2 * (c + 1 + l * ((c * c - 1) / 3 + l * (c**3 + 1) / 12))
        np.copyto(plain, series, where=small)
    term = np.maximum(plain, 1e-320, out=plain)
    if plainly:
        sums = np.einsum("ij,j->i", term, np.exp(log_ratios + log_base))
        if float(sums.min()) > 1e-250:  # so that no float of either factor was too small
            return np.asarray(np.log1p(sums) * (1 + SAFETY), dtype=np.float64)
    with np.errstate(over="ignore"):
        log_term = np.where(step > 30, step, np.log(term))
    # Below e^-30 the part c e^-l is nearly all of the term, and at least it.
    exponents = np.where(l < -30, np.log(c), log_term + l) + log_base
    top = exponents.max(axis=1)
    total = top + np.log(np.exp(exponents - top[:, None]).sum(axis=1))
    moments: Floats = np.logaddexp(0.0, total) * (1 + SAFETY)
    return moments


SMALLEST_DELTA = 1e-280
"""Probabilities below it may stand for masses that no float holds."""

TAIL_UNITS = 2.0**-50
"""What a difference of two probabilities may be off by."""


@dataclass(frozen=True, eq=False)
class DirectedPair(Checked, ABC):
    """A pair (P, Q), not necessarily symmetric, seen through its loss L = ln dP/dQ."""

    @abstractmethod
    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """(P[L > loss], Q[L > loss]), accurate relative to themselves in the upper tail."""

    @abstractmethod
    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """(P[L <= loss], Q[L <= loss]), accurate relative to themselves in the lower tail."""

    @abstractmethod
    def nodes(self, tail: float, count: int) -> Floats:
        """Choose about ``count`` increasing losses that resolve the law of L.

        About ``tail`` of the P-mass lies below the first and at most that much above the last
        (mass at infinity apart).
        """

    @property
    @abstractmethod
    def max_loss(self) -> float:
        """The largest loss, rounded up; infinity where there is none."""

    @property
    def is_attained(self) -> bool:
        """As :attr:`dpaudit.mechanisms.DominatingPair.is_attained`."""
        return True

    @cached_property
    def infinite(self) -> float:
        """The P-mass of infinite loss."""
        return float(self.above(math.inf)[0])

    @property
    def truly_infinite(self) -> float:
        """The same; 0 where it is so rare that it may stand for what a pair left out of its law."""
        return 0.0 if self.infinite < SMALLEST_DELTA else self.infinite

    def atoms(self) -> tuple[Floats, Floats] | None:
        """Finite losses and their P-masses where there are finitely many losses, else None."""
        return None

    @property
    def span(self) -> float | None:
        """A loss that a grid should divide, because the law has an atom there; or None."""
        return None

    @property
    def total_variation(self) -> float:
        """The divergence at ε = 0, rounded up."""
        return min(float(self.delta(0.0)) * (1 + 1e-9) + TAIL_UNITS, 1.0)

    def delta(self, epsilon: ArrayLike) -> Floats:
        """Hockey-stick divergence P[L > ε] − e^ε Q[L > ε] of one use."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        p, q = self.above(epsilon)
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.where(q > 0, np.exp(epsilon) * q, 0.0)
        clipped: Floats = np.clip(p - scaled, 0.0, 1.0)
        return clipped


@dataclass(frozen=True)
class PlainPair(DirectedPair):
    """A symmetric pair as it is: both directions cost the same.

    Attributes:
        base: the symmetric pair.
    """

    base: DominatingPair

    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """P- and Q-mass of losses above, as of the base."""
        return self.base.above(loss)

    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """P- and Q-mass of losses below, as of the base."""
        return self.base.below(loss)

    def nodes(self, tail: float, count: int) -> Floats:
        """Evenly spaced losses."""
        return even(self.base.lower_quantile(tail), self.base.upper_quantile(tail), count)

    @property
    def max_loss(self) -> float:
        """The pure ε of the base."""
        return as_float(self.base.pure_epsilon)

    @property
    def is_attained(self) -> bool:
        """As the base."""
        return self.base.is_attained

    def atoms(self) -> tuple[Floats, Floats] | None:
        """Losses and masses of a finite base; None for any other."""
        if isinstance(self.base, FinitePair):
            return self.base.losses, self.base.p
        return None

    @property
    def span(self) -> float | None:
        """The loss that a grid should divide, if the base has one."""
        return self.base.span


def even(low: float, high: float, count: int) -> Floats:
    """Evenly spaced losses; one where the two ends meet, two where they are infinite."""
    if not high > low:
        return np.array([low])
    return (
        np.array([low, high])
        if count == 2 or math.isinf(high - low)
        else np.linspace(low, high, count)
    )


@dataclass(frozen=True)
class Amplification(Checked, ABC):
    """A sampling scheme under a relation for which its amplification is proved.

    Attributes:
        rate: probability, rounded up, that a unit takes part.
    """

    rate: OpenProbability
    is_attained: ClassVar[bool] = True
    """Whether one use may cost as much as its pairs, and is not merely dominated by them."""

    def uses(self, count: int) -> int:
        """Count the pairs that so many releases cost."""
        return count

    def epsilon(self, epsilon: Fraction | float) -> Fraction | float:
        """The pure ε of one use after sampling: ln(1 + q(e^ε − 1)), rounded up.

        Both under Poisson sampling for add-remove and zero-out and for subsets of fixed size under
        replace-one (Balle, Barthe and Gaboardi 2018, Theorems 8 and 9).
        """
        if epsilon == 0 or epsilon == math.inf:
            return epsilon
        before = as_float(epsilon)
        if before > 700:
            tail = math.exp(-before) / self.rate
            return min(epsilon, up(before + math.log(self.rate) + tail, 4))
        return min(epsilon, up(math.log1p(self.rate * math.expm1(before)), 4))

    @abstractmethod
    def directed(self, pair: DominatingPair) -> tuple[DirectedPair, DirectedPair]:
        """The (remove, add) pairs that dominate one use after sampling."""

    @abstractmethod
    def log_moments(self, pair: DominatingPair) -> Floats:
        """(α − 1) times the Rényi divergence after sampling, rounded up, at the orders in use.

        Returns:
            One number for each of :data:`~dpaudit.accounting.orders.ORDERS`; infinite where none
            is computed.
        """

    def _shared_moments(self, kappa: Floats) -> Floats:
        """Ln(1 − q + q e^κ), rounded up: the moments of two mixtures with a part in common.

        By joint convexity, as the common part of weight 1 − q has the moment 1.
        """
        return log_ratio(np.where(np.isnan(kappa), np.inf, kappa), self.rate) * (1 + SAFETY)

    def integer_moments(self, pair: DominatingPair, orders: tuple[int, ...]) -> Floats:
        """The same at integer orders, by the formula of the classic moments accountant.

        Raises:
            UnsupportedError: if there is no such formula.
        """
        raise UnsupportedError("the moments accountant has no formula for its sampling scheme.")


@singledispatch
def amplification(sampling: Sampling | None, invocation: Invocation) -> Amplification | None:
    """Find how sampling amplifies one use; None where every unit takes part.

    Raises:
        UnsupportedError: if no theorem covers the scheme under the relation of the invocation.
    """
    raise refusal(invocation, "no amplification is proved for it, so declare it without sampling.")


@amplification.register(type(None))
def _(sampling: None, invocation: Invocation) -> None:
    return None


def refusal(invocation: Invocation, reason: str) -> UnsupportedError:
    """The error of a scheme without a theorem; the sentence names the invocation."""
    kind = "no" if invocation.sampling is None else invocation.sampling.kind
    return UnsupportedError(
        f"{invocation.describe()} has {kind} sampling under {invocation.relation}; {reason}"
    )
