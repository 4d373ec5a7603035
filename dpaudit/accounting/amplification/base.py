"""What secret sampling makes of a mechanism's privacy: one class for each scheme.

A sampling scheme takes part in every accountant once it is registered with
``amplification.register``, for the relations for which its amplification is proved.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from typing import ClassVar

import numpy as np

from dpaudit.accounting.amplification.directed import DirectedPair
from dpaudit.accounting.amplification.moments import SAFETY, log_ratio
from dpaudit.base.errors import UnsupportedError
from dpaudit.base.fields import Checked, OpenProbability
from dpaudit.mechanisms import DominatingPair
from dpaudit.mechanisms.pairs import Floats
from dpaudit.mechanisms.rounding import as_float, up
from dpaudit.plan import Invocation, Sampling


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
