"""From a composed law on a grid to bounds on δ(ε) and ε(δ): every error, added up.

Let S be the exact composed loss and S̃ = S + D the one on the grid, f(u) = (1 − e^(−u))₊, and
δ(ε) = E f(S − ε) under P.

*Upper end.* The grid law dominates, so δ(ε) ≤ E f(S̃ − ε), plus what the window leaves out (a
Chernoff bound), infinite loss, and the rounding error of every mass.

*Lower end* (the second-order form of the coupling argument of Gopi, Lee and Wutschitz 2021,
Theorem 5). D = Σ Dᵢ has, given S, E[e^(−D)] = 1, 0 ≤ E[D] ≤ m = Σ κ(h) and sub-Gaussian deviations
with variance proxy s² = Σ h²/4 (Hoeffding's lemma: each Dᵢ has two values h apart). By put-call
parity the excess E[f(u + D) | S] − f(u) is E[(e^(−u−D) − 1)₊] for u ≥ 0 and E[(1 − e^(−u−D))₊] for
u < 0: the kink of f alone costs, and the excess is at most a function G(|u|) that falls like
s e^(−u²/2s²) beyond u = −m. Given S, moreover, |D| ≤ rs + m with probability at least
1 − 2e^(−r²/2), so that P[|S − ε| ≤ a] ≤ P[|S̃ − ε| ≤ a + rs + m] / (1 − 2e^(−r²/2)). Hence
E f(S̃ − ε) − δ(ε) ≤ E G(|S − ε|) is bounded by masses of S̃ near ε: second order in h. Where s or m
is not small beside 1, the plain coupling S ≥ S̃ − m − ts with probability 1 − e^(−t²/2) is better.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpaudit.accounting.pld.grid import UNIT, GridLoss, Spectrum, Tilt, TiltedLaw
from dpaudit.mechanisms.pairs import Floats

_NEARBY = 2.5
NEAR = 1 - 2 * math.exp(-_NEARBY * _NEARBY / 2)
"""Least probability that |D| ≤ r s + m, with r = 2.5."""


def layers(s: float, m: float, log_scale: float) -> tuple[Floats, Floats, float]:
    """(reach, falls, rest) with E G(|S − ε|) ≤ Σ falls[j] P[|S̃ − ε| ≤ reach[j]] / NEAR + rest."""
    # The rest is multiplied by a probability of up to one: it must be far below the scale of δ.
    reach = s * math.sqrt(2 * (max(-log_scale, 0.0) + 40.0)) + m
    near = np.linspace(0.0, 4 * s + m, 17)
    edges = np.concatenate([near, np.geomspace(near[-1], reach, 13)[1:]])
    heights = _excess_bound(edges, s, m)
    reaches = (edges[1:] + _NEARBY * s + m) * (1 + 1e-12)
    return reaches, heights[:-1] - heights[1:], float(heights[-1])


def _excess_bound(distance: Floats, s: float, m: float) -> Floats:
    """G: a decreasing bound on the excess at |u| = distance, on both sides of the kink."""
    from scipy.special import ndtr

    root = math.sqrt(2 * math.pi)
    right = np.exp(np.minimum(s * s / 2 - distance, 700.0)) * s * root * ndtr(s - distance / s)
    if s < 1:
        # The variance of e^(−D), of mean 1, is at most e^(2s²) − 1.
        step = np.expm1(np.minimum(distance, 700.0))
        variance = math.expm1(2 * s * s)
        right = np.minimum(right, np.exp(-distance) * _mean_excess(variance, step))
    beyond = distance - m
    left = np.where(beyond >= 0, s * root * ndtr(-beyond / s), np.inf)
    left = np.minimum(left, _mean_excess(s * s, beyond))
    bound = np.minimum(np.maximum(left, right), 1.0)
    monotone: Floats = np.maximum.accumulate(bound[::-1])[::-1]
    return monotone


def _mean_excess(variance: float, level: Floats) -> Floats:
    """E(X − a)₊ ≤ (√(v + a²) − a)/2 for any X of mean at most 0 and variance at most v."""
    hypot = np.sqrt(variance + level * level)
    above = variance / (2 * (hypot + np.abs(level)))
    value: Floats = np.where(level > 0, above, (hypot - level) / 2)
    return value


@dataclass(frozen=True)
class Budget:
    """Everything that separates a composed law on a grid from the exact one.

    Attributes:
        log_mgf: ln E[e^(θS̃)] of the finite part.
        above: tilted mass above the window, at most.
        below: tilted mass below the window, at most.
        excess: tilted mass that earlier stages may have added or lost.
        infinite: probability of infinite loss, truncation included.
        truly_infinite: probability of infinite loss.
        displaced: probability that truncation moved any loss.
        moved: tilted mass moved up against rounding, times the distance.
        relative: relative rounding error of every mass.
        lift: bound on the sum of threshold errors, in units of loss.
        spread: s of the coupling.
        drift: m of the coupling.
    """

    log_mgf: float
    above: float
    below: float
    excess: float
    infinite: float
    truly_infinite: float
    displaced: float
    moved: float
    relative: float
    lift: float
    spread: float
    drift: float


class Tally:
    """Sums the error terms of single losses into the budget of their composition."""

    def __init__(self) -> None:
        self._logs = np.zeros(3)
        self._finite = self._truly_finite = 0.0
        self._displaced = self._moved = self._excess = 0.0
        self._lift = self._variance = self._drift = 0.0
        self._relative = 1e-12

    def add(self, loss: GridLoss, spectrum: Spectrum, count: int) -> None:
        """``count`` more uses of one loss."""
        self._logs += count * np.array(spectrum.logs)
        self._finite += count * _log_complement(loss.infinite)
        self._truly_finite += count * _log_complement(loss.truly_infinite)
        self._displaced += count * loss.displaced
        self._moved += count * (spectrum.moved + loss.carried)
        self._excess += count * loss.excess
        self._relative += count * (UNIT * (16 + 4 * spectrum.exponent) + loss.relative)
        self._lift += count * loss.lift
        self._variance += count * loss.variance
        self._drift += count * loss.drift

    def budget(self, tilt: Tilt, bottom: float, top: float) -> Budget:
        """The error budget of all that has been added, on a window [bottom, top)."""
        log, log_down, log_up = (float(value) for value in self._logs)
        return Budget(
            log_mgf=log,
            above=_chernoff(log, log_up, -tilt.up * top),
            below=_chernoff(log, log_down, tilt.down * bottom),
            excess=self._excess * (1 + 1e-6),
            infinite=-math.expm1(self._finite) * (1 + 1e-12),
            truly_infinite=-math.expm1(self._truly_finite) * (1 - 1e-12),
            displaced=self._displaced * (1 + 1e-12),
            moved=self._moved * (1 + 1e-6),
            relative=self._relative,
            lift=self._lift * (1 + 1e-12),
            spread=math.sqrt(self._variance) * (1 + 1e-12),
            drift=self._drift * (1 + 1e-12),
        )


def _chernoff(log: float, log_end: float, moved: float) -> float:
    """A bound on the tilted mass beyond an end, rounded up."""
    rounding = 1e-12 * (1 + abs(log) + abs(log_end))
    return math.exp(min(log_end - log + moved + rounding, 0.0))


def _log_complement(probability: float) -> float:
    return math.log1p(-probability) if probability < 1 else -math.inf


_BLOCK = 200.0
_REACH = 500.0


class Frame:
    """What laws on the same window under the same tilt share.

    Attributes:
        spacing: distance of grid points.
        theta: the tilt.
        anchor: the loss at which weights are 1.
        start: how many points of the window are left out, far below the anchor.
        points: losses of the others, shape (n,).
        weights: e^(−θ (x − anchor)), shape (n,).
    """

    def __init__(self, first: int, size: int, spacing: float, theta: float, anchor: float) -> None:
        points = np.arange(first, first + size, dtype=np.float64) * spacing
        # An anchor beyond the window has no weights that floats hold.
        anchor = min(anchor, float(points[-1]))
        self.spacing, self.theta, self.anchor = spacing, theta, anchor
        self.start = 0 if theta == 0 else int(np.searchsorted(points, anchor - _REACH / theta))
        self.points = points[self.start :]
        self.weights = np.exp(-theta * (self.points - anchor))
        self._block = max(int(_BLOCK / spacing), 1)
        self._decay = np.exp(-spacing * np.arange(min(self._block, size), dtype=np.float64))

    def discounted_sums(self, masses: Floats) -> Floats:
        """T[k] = Σ_{j ≥ k} masses[j] e^(−(j − k) h), in blocks so that nothing overflows."""
        sums = np.empty_like(masses)
        carry = 0.0
        for end in range(len(masses), 0, -self._block):
            begin = max(end - self._block, 0)
            decay = self._decay[: end - begin]
            block = np.cumsum((masses[begin:end] * decay)[::-1])[::-1] / decay
            if carry > 0:
                block += carry * math.exp(-self.spacing) * decay[::-1]
            sums[begin:end] = block
            carry = float(block[0])
        return sums


class ComposedLaw:
    """The composed loss under a tilt, with its error budget.

    Masses are kept relative to e^(log_mgf − θ c), c the ``anchor``, so that those which matter are
    of order one whatever δ is.
    """

    def __init__(self, law: TiltedLaw, frame: Frame, budget: Budget) -> None:
        self.frame = frame
        self.budget = budget
        self.size = len(law.masses)
        self.spacing, self.theta, self._anchor = frame.spacing, frame.theta, frame.anchor
        self._log_scale = budget.log_mgf - frame.theta * frame.anchor
        self._points, self._weights = frame.points, frame.weights
        self._error = law.error
        masses = np.maximum(law.masses[frame.start :], 0.0)
        masses += law.error
        masses *= self._weights
        masses *= 1 + budget.relative
        last = -self.theta * (self._points[-1] - self._anchor)
        beyond = budget.above * math.exp(max(min(float(last), _REACH), -_REACH))
        self._at_least = np.zeros(len(masses) + 1)
        np.cumsum(masses[::-1], out=self._at_least[-2::-1])
        self._at_least += beyond
        # Mass that an earlier stage may have lost is taken to lie where it costs most.
        self._lost = 0.0
        if budget.excess > 0:
            self._lost = budget.excess * math.exp(self.theta * self.spacing)
            self._at_least[:-1] += self._lost * self._weights
            self._at_least[-1] += self._lost * self._weights[-1]
        self._discounted = frame.discounted_sums(masses)
        self._sum_error = 8 * len(masses) * UNIT
        self._layers: tuple[Floats, Floats, float] | None = None

    # -- ε at δ ----------------------------------------------------------------------------------

    def epsilon_upper(self, delta: float) -> float:
        """An ε with δ(ε) ≤ delta; infinity if this law shows none."""
        target = self._scaled((delta - self.budget.infinite) * (1 - 1e-12))
        if target <= 0:
            return math.inf
        mass, discounted = self._at_least * (1 + self._sum_error), self._discounted
        # curve[k] bounds δ at the grid point before k, the first that only points k, k+1, … exceed.
        curve = mass[:-1] - math.exp(-self.spacing) * discounted
        good = np.flatnonzero(curve <= target)
        if good.size == 0:
            return math.inf
        k = int(good[0])
        if k == 0:
            return self._rounded_up(float(self._points[0]) - self.spacing)
        k -= 1
        step = (float(mass[k]) - target) / float(discounted[k])
        end = float(self._points[k])
        inside = end + math.log(step) if step > 0 else end - self.spacing
        return self._rounded_up(min(max(inside, end - self.spacing), end))

    def epsilon_lower(self, delta: float, upper: float, guess: float = 0.0) -> float:
        """An ε with δ(ε) > delta; minus infinity if this law shows none.

        Args:
            delta: δ.
            upper: what :meth:`epsilon_upper` gave.
            guess: about how far below it the lower end lies, where known.
        """
        if delta < self.budget.truly_infinite:
            return math.inf
        nearby = self._last(delta, upper, self.delta_lower, guess)
        # Where losses are large, better: δ(ε) ≥ E f(S̃ − ε − m − ts) − P[D > m + ts].
        t = math.sqrt(2 * math.log(1e6 / max(delta, 1e-300)))
        shift = self.budget.drift + t * self.budget.spread
        if nearby > upper - shift / 2:
            return nearby
        shifted = self._last(delta * (1 + 1e-6), upper, self._grid_lower, 0.0)
        return max(nearby, shifted - shift * (1 + 1e-12))

    def _last(
        self, delta: float, upper: float, curve: Callable[[float], float], guess: float
    ) -> float:
        """Nearly the last ε before ``upper`` at which a lower curve exceeds delta."""
        upper = min(upper, float(self._points[-1]))
        width = max(self.budget.lift, 1e-13 * abs(upper), self.spacing * 1e-6, self._width() / 64)
        growth, steps = (2.0, 6) if guess <= width else (1.2, 2)
        width = max(width, guess)
        while curve(upper - width) <= delta:
            width *= growth
            if upper - width < self._points[0]:
                return -math.inf
        low, high = upper - width, upper - width / growth
        for _ in range(steps):
            middle = (low + high) / 2
            low, high = (middle, high) if curve(middle) > delta else (low, middle)
        return low

    # -- δ at ε ----------------------------------------------------------------------------------

    def delta_upper(self, epsilon: float) -> float:
        """A bound on δ(ε) from above."""
        epsilon = epsilon - self.budget.lift
        if epsilon < self._points[0]:
            return 1.0
        finite = self._curve(epsilon, 1 + self._sum_error)
        return min(self._unscaled(finite) + self.budget.infinite, 1.0) * (1 + 1e-12)

    def delta_lower(self, epsilon: float) -> float:
        """A bound on δ(ε) from below."""
        return self._lower(epsilon, self._excess)

    def _grid_lower(self, epsilon: float) -> float:
        """A bound from below on the curve of S̃, where truncation did not interfere."""
        return self._lower(epsilon, lambda _: 0.0)

    def _lower(self, epsilon: float, excess: Callable[[float], float]) -> float:
        budget = self.budget
        epsilon = max(epsilon + budget.lift, float(self._points[0]))
        tilt = math.exp(max(min(-self.theta * (epsilon - self._anchor), _REACH), -_REACH))
        slack = 2 * self._error * self._weight_sum(epsilon)
        slack += budget.above + budget.below + budget.moved + 4 * budget.excess
        mass, first = self._from(epsilon)
        value = 0.0
        if first < len(self._points):  # beyond the window there are only masses from above
            finite = self._curve(epsilon, 1 - self._sum_error)
            finite -= 3 * budget.relative * mass + tilt * slack + excess(epsilon)
            value = self._unscaled(finite) if finite > 0 else -self._unscaled(-finite)
        value += budget.truly_infinite - budget.displaced
        return max(value - 1e-12 * abs(value), 0.0)

    # -- pieces ----------------------------------------------------------------------------------

    def _scaled(self, probability: float) -> float:
        if probability <= 0:
            return 0.0
        return math.exp(min(math.log(probability) - self._log_scale, 700.0))

    def _unscaled(self, value: float) -> float:
        if value <= 0:
            return 0.0
        return math.exp(min(math.log(value) + self._log_scale, 1.0))

    def _rounded_up(self, epsilon: float) -> float:
        return epsilon + self.budget.lift + 1e-14 * abs(epsilon) + 1e-3 * UNIT

    def _width(self) -> float:
        s = self.budget.spread
        return 4 * s * s * (1 + self.theta)

    def _from(self, epsilon: float) -> tuple[float, int]:
        """Mass of the points above ε, and the index of the first of them."""
        k = int(np.searchsorted(self._points, epsilon, side="right"))
        return float(self._at_least[k]), k

    def _curve(self, epsilon: float, factor: float) -> float:
        mass, k = self._from(epsilon)
        if k == len(self._points):
            return max(mass, 0.0)
        nearer = math.exp(epsilon - float(self._points[k])) * float(self._discounted[k])
        return max(mass * factor - nearer, 0.0)

    def _weight_sum(self, epsilon: float) -> float:
        """Σ (1 − e^(−u)) e^(−θu) over grid distances u above ε, from above."""
        longest = max(float(self._points[-1]) - epsilon, 0.0) / self.spacing + 1
        if self.theta == 0:
            return longest
        return min(longest, 1 + 1 / (self.spacing * self.theta * (1 + self.theta)))

    def _excess(self, epsilon: float) -> float:
        """E G(|S − ε|), scaled."""
        s, m = self.budget.spread, self.budget.drift
        if s == 0:
            return 0.0
        if self._layers is None:
            self._layers = layers(s, m, self._log_scale)
        reach, falls, rest = self._layers
        high = np.searchsorted(self._points, epsilon + reach, side="right")
        low = np.searchsorted(self._points, epsilon - reach, side="left")
        beyond = np.where(high < len(self._points), self._at_least[high], 0.0)
        inside = self._at_least[low] * (1 + 2 * self._sum_error) - beyond
        if self._lost > 0:
            inside += self._lost * self._weights[np.minimum(low, len(self._weights) - 1)]
        whole = self._scaled(1.0)
        # Below the first point nothing is known but that probabilities are at most one.
        inside = np.where(low > 0, np.minimum(inside, whole), whole)
        return float(falls @ inside) / NEAR + rest * whole
