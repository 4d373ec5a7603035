"""Subsets of fixed size, when one unit is replaced by another."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.accounting.amplification.base import (
    Amplification,
    DirectedPair,
    amplification,
    log_moment,
    log_ratio,
    refusal,
)
from dpaudit.accounting.amplification.known_participation import KnownParticipation
from dpaudit.accounting.amplification.mixtures import quadrature
from dpaudit.accounting.amplification.poisson_pairs import AddedPair, RemovedPair
from dpaudit.accounting.orders import ORDERS
from dpaudit.base.fields import OpenProbability
from dpaudit.mechanisms import DominatingPair
from dpaudit.mechanisms.pairs import Floats
from dpaudit.mechanisms.rounding import round_up
from dpaudit.plan import FixedSizeSampling, Invocation, ReplaceOne, ZeroOut

TAKEN_PLACE = (
    "in a sample of fixed size another unit takes the place of the protected one, so declare "
    "the sensitivity under replace-one."
)


@dataclass(frozen=True)
class ReplacedPair(DirectedPair):
    """The symmetric pair of a fixed-size sample when one unit is replaced by another.

    With γ = m/n, δ'(ln(1 + γ(e^ε − 1))) = γ δ(ε) for ε ≥ 0 (Balle, Barthe and Gaboardi 2018,
    sampling without replacement under substitution), which is the curve of
    :class:`~dpaudit.accounting.amplification.poisson_pairs.RemovedPair` for losses of at least 0.
    Replacement is a symmetric relation, so that negative losses follow by
    H_α(P‖Q) = 1 − α + α H_{1/α}(Q‖P): the curve of
    :class:`~dpaudit.accounting.amplification.poisson_pairs.AddedPair`. The two meet at loss 0 in
    an atom, and their maximum is convex, hence the curve of a pair (Zhu et al. 2022, Lemma 10).

    Attributes:
        base: symmetric pair of the unsampled mechanism at its replace-one sensitivity.
        rate: sample size over population, in (0, 1).
    """

    is_attained = False  # gains and losses are those of different neighbours
    base: DominatingPair
    rate: OpenProbability

    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Take the remove pair's from 0 on, the add pair's below."""
        return self._joined(loss, self._remove.above(loss), self._add.above(loss))

    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """The complement of :meth:`above`."""
        return self._joined(loss, self._remove.below(loss), self._add.below(loss))

    def nodes(self, tail: float, count: int) -> Floats:
        """Nodes of the remove pair above 0, of the add pair below, and 0."""
        high, low = self._remove.nodes(tail, count), self._add.nodes(tail, count)
        return np.unique(np.concatenate([low[low < 0], [0.0], high[high > 0]]))

    @property
    def max_loss(self) -> float:
        """That of the remove pair."""
        return self._remove.max_loss

    @property
    def _remove(self) -> RemovedPair:
        return RemovedPair(self.base, self.rate)

    @property
    def _add(self) -> AddedPair:
        return AddedPair(self.base, self.rate)

    @staticmethod
    def _joined(
        loss: ArrayLike, remove: tuple[Floats, Floats], add: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats]:
        positive = np.asarray(loss, dtype=np.float64) >= 0
        return np.where(positive, remove[0], add[0]), np.where(positive, remove[1], add[1])


@dataclass(frozen=True)
class FixedSizeAmplification(Amplification):
    """A uniform subset of the units, under replace-one."""

    def directed(self, pair: DominatingPair) -> tuple[DirectedPair, DirectedPair]:
        """The same pair both ways."""
        replaced = ReplacedPair(pair, self.rate)
        return replaced, replaced

    def log_moments(self, pair: DominatingPair) -> Floats:
        """The profile's own moments up to order 128, and joint convexity of moments everywhere."""
        moments = self._shared_moments((ORDERS - 1) * pair.renyi(ORDERS))
        for top in (128.0, 16.0, 4.0, 1.5):
            orders = ORDERS[top >= ORDERS]
            own = fixed_size_moments(pair, self.rate, orders)
            if own is not None:
                moments[: orders.size] = np.minimum(moments[: orders.size], own)
                break
        return moments


@amplification.register(FixedSizeSampling)
def _(sampling: FixedSizeSampling, invocation: Invocation) -> Amplification | None:
    rate = round_up(Fraction(sampling.size, sampling.population))
    if rate == 1:
        return None
    if isinstance(invocation.relation, ReplaceOne):
        return FixedSizeAmplification(rate)
    if invocation.relation.replaces or isinstance(invocation.relation, ZeroOut):
        return KnownParticipation(rate)
    raise refusal(invocation, TAKEN_PLACE)


def fixed_size_moments(pair: DominatingPair, rate: float, orders: Floats) -> Floats | None:
    """Ln of the α-moment that bounds subsets of fixed size under replace-one.

    For t >= 1 the hockey-stick divergence of order t is at most that of (qP + (1 − q)Q, Q), for
    t < 1 at most that of (P, (1 − q)P + qQ) (Balle, Barthe and Gaboardi 2018, Theorems 2 and 9;
    Zhu, Dong and Wang 2022, Theorem 11). These two halves are the profile of one pair, whose
    moments are the integral of the profile against α(α − 1)t^(α − 2): the positive losses of the
    first pair and the negative losses of the second, each less its tangent at 1. None where there
    is no quadrature for the pair.
    """
    nodes = quadrature(pair, float(orders[-1]), split=True)
    if nodes is None:
        return None
    losses, log_q = nodes
    gain, back = losses > 0, losses[losses < 0]
    log_back = log_ratio(-back, rate)
    log_ratios = np.concatenate([log_ratio(losses[gain], rate), -log_back])
    log_base = np.concatenate([log_q[gain], log_q[losses < 0] + back + log_back])
    return log_moment(orders, log_ratios, log_base)
