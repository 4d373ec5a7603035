"""How much of a certified ε audits of so many runs can show at all, whatever they compute.

An audit that is valid shows a given share of ε with a chance that the laws of the scores bound.
What is beyond that bound is no fault of the attack.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import root

from audits.opacus.audited import Setting

Floats = NDArray[np.float64]
_STEP = 1e-2
"""Width of a cell of scores, of which all are taken to be alike."""


def chance(setting: Setting, share: float, runs: int, *, level: float = 0.05) -> float:
    """A bound on the probability that a valid audit shows a share of the certified ε.

    A lower bound of confidence 1 − α that is at least ε₀ refutes each mechanism of that ε₀ at
    level α. So it is there no more often than the test of Neyman and Pearson refutes one of them,
    the plan's law P, Q of scores being true. The one that is taken here keeps
    e^(−ε₀) ≤ P₀/Q₀ ≤ e^(ε₀) and is else as P, Q: scores are all that an audit can use of the
    canary's part of a training (they are sufficient), and δ, which is left out, helps no audit.

    Args:
        setting: of the training.
        share: of the certified ε.
        runs: of members, and as many of others.
        level: α.
    """
    p, q = law(setting)
    within, weights = _nearest(p, q, share * setting.certified)
    ratios = [np.log(held / near) for held, near in zip((p, q), within, strict=True)]
    drawing = np.random.default_rng(0)

    def drawn(sides: tuple[Floats, Floats]) -> Floats:
        """The logarithm of the ratio of both sides' likelihoods, of many audits."""
        total = np.zeros(10_000)
        for side, ratio, usual in zip(sides, ratios, np.log(weights), strict=True):
            odd = np.abs(ratio - usual) > 1e-9  # elsewhere the ratio is one number
            hits = drawing.binomial(runs, side[odd].sum(), total.size)
            found = drawing.choice(ratio[odd], hits.sum(), p=side[odd] / side[odd].sum())
            audit = np.repeat(np.arange(total.size), hits)
            total += np.bincount(audit, found - usual, total.size) + runs * usual
        return total

    true, null = np.round(drawn((p, q)), 9), np.round(drawn(within), 9)
    least = float(np.quantile(null, 1 - level))
    tied = (level - (null > least).mean()) / max((null == least).mean(), 1e-12)  # by a coin
    return float((true > least).mean() + min(1.0, max(0.0, tied)) * (true == least).mean())


def law(setting: Setting) -> tuple[Floats, Floats]:
    """Probabilities of cells of scores, of members and of others, by convolution of the steps."""
    noise, rate, steps = setting.noise, 1 / setting.batches, setting.batches * setting.epochs
    x = np.linspace(-10 * noise, 10 * noise + 1, 400_001)
    others = np.exp(-((x / noise) ** 2) / 2)
    members = others * (1 - rate + rate * np.exp((x - 0.5) / noise**2))
    scores = setting.likelihood(x[:, None])
    cells = np.rint((scores - scores.min()) / _STEP).astype(int)
    size = int(cells.max()) * steps + 1
    found = []
    for density in (members, others):
        one = np.bincount(cells, density) / density.sum()
        whole = np.fft.irfft(np.fft.rfft(one, 2 * size) ** steps, 2 * size)[:size]
        found.append(whole)
    held = (found[0] > 1e-13) & (found[1] > 1e-13)
    return found[0][held] / found[0][held].sum(), found[1][held] / found[1][held].sum()


def _nearest(p: Floats, q: Floats, epsilon: float) -> tuple[tuple[Floats, Floats], Floats]:
    """Laws whose ratio is within e^±ε, of the least divergence from p, q; and what divides these.

    Where the ratio is within, they are p/a and q/b. Beyond, of all laws of the ratio e^ε,
    p log p₀ + q log q₀ is largest for q₀ in proportion to p + q.
    """
    factor = math.exp(epsilon)

    def laws(weights: Floats) -> tuple[Floats, Floats]:
        a, b = weights
        p0, q0 = p / a, q / b
        above, below = p0 > factor * q0, q0 > factor * p0
        high, low = (p + q) / (a * factor + b), (p + q) / (b * factor + a)
        p0, q0 = np.where(above, factor * high, p0), np.where(above, high, q0)
        return np.where(below, low, p0), np.where(below, factor * low, q0)

    weights = root(lambda held: [side.sum() - 1 for side in laws(held)], [1.0, 1.0]).x
    return laws(weights), weights
