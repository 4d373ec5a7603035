"""The pair of mechanisms whose privacy losses span a bounded range."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.base.fields import Positive
from dpaudit.mechanisms.pairs.base import DominatingPair, Floats
from dpaudit.mechanisms.rounding import concentration


@dataclass(frozen=True)
class BoundedRangePair(DominatingPair):
    """The law whose curve is the worst of all mechanisms with losses in some [t − ε, t].

    For one t the worst has two losses, t and t − ε, the former of Q-mass
    (e^−t − e^−ε)/(1 − e^−ε). Its δ(x) = (e^−t − e^−ε)(e^t − e^x)/(1 − e^−ε) is the largest at
    t = (ε + x)/2, where it is (1 − e^((x−ε)/2))²/(1 − e^−ε) (Dong, Durfee and Rogers 2020, *Optimal
    differential privacy composition for exponential mechanisms*). The law with that curve has the
    P-density e^((x−ε)/2)/2(1 − e^−ε) on [−ε, ε].

    Attributes:
        epsilon: ε, the span of the losses and the largest of them.
    """

    is_attained: ClassVar[bool] = False
    epsilon: Positive

    def above(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """(1 − e^((x−ε)/2))/(1 − e^−ε), and e^(−(x+ε)/2) times that."""
        x = np.clip(np.asarray(loss, dtype=np.float64), -self.epsilon, self.epsilon)
        p = np.expm1((x - self.epsilon) / 2) / math.expm1(-self.epsilon)
        return p, np.exp(-(x + self.epsilon) / 2) * p

    def below(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Mirror those above −x, of Q and of P."""
        q, p = self.above(-np.asarray(loss, dtype=np.float64))
        return p, q

    def delta(self, epsilon: ArrayLike) -> Floats:
        """(1 − e^((x−ε)/2))²/(1 − e^−ε) inside, 0 above ε, 1 − e^x below −ε."""
        asked = np.asarray(epsilon, dtype=np.float64)
        x = np.clip(asked, -self.epsilon, self.epsilon)
        step = np.expm1((x - self.epsilon) / 2)
        inside = step * (step / -math.expm1(-self.epsilon))
        below = -np.expm1(np.minimum(asked, 0.0))
        curve: Floats = np.where(asked < -self.epsilon, below, inside)
        return curve

    def renyi(self, orders: ArrayLike) -> Floats:
        """That of the law: E_P[e^((α−1)L)] = e^(−ε/2) sinh(aε)/a(1 − e^−ε) with a = α − 1/2."""
        a, e = np.asarray(orders, dtype=np.float64) - 0.5, self.epsilon
        grown = -np.expm1(-2 * a * e) / (2 * a * -math.expm1(-e))
        curve = ((a - 0.5) * e + np.log(grown)) / (a - 0.5)
        return np.clip(curve, 0.0, e)

    @property
    def pure_epsilon(self) -> Fraction:
        """The span."""
        return Fraction(self.epsilon)

    @property
    def zcdp_rho(self) -> float:
        """ε²/8, which the mechanism has (Cesar and Rogers 2021, Lemma 3.2), rounded up."""
        return concentration(self.pure_epsilon, 0.125)

    def upper_quantile(self, tail: float) -> float:
        """The end of the law."""
        return self.epsilon

    def lower_quantile(self, tail: float) -> float:
        """Invert the exponential density."""
        end = math.exp(-self.epsilon)
        return max(-self.epsilon, self.epsilon + 2 * math.log(tail * (1 - end) + end + 1e-300))
