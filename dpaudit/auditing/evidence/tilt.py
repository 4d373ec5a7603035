"""A smooth guess of two score distributions from a pilot, for choosing events only.

Rare events promise the largest epsilons, and their pilot frequencies are the noisiest. The
two-sample exponential tilt model (Qin 1998) borrows strength from the bulk: the log odds of "this
score came from x" are a line or a parabola in the score clipped at two quantiles. That is exact for
Gaussian (no clipping) and Laplace noise (clipped at the two true answers); the clipping level
is chosen by penalised likelihood. A wrong model only costs power: evidence never rests on it.
"""

from __future__ import annotations

import numpy as np

from dpaudit.mechanisms.pairs import Floats

_CLIPS = (0.0, 0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)
# Log likelihood that a parabola, and any clipping, must gain; more than Akaike's 1, as the models
# without them extrapolate best to the tails, where the largest epsilons are.
_DEGREE_PENALTY, _CLIP_PENALTY = 2.0, 3.0


def _fit(features: Floats, hits: Floats, totals: Floats) -> tuple[float, Floats]:
    """Log likelihood and fitted probabilities of a logistic regression with a slight ridge."""
    weights = np.zeros(features.shape[1])
    ridge = 1e-3 * np.eye(weights.size)
    for _ in range(12):
        chance = 1.0 / (1.0 + np.exp(-np.clip(features @ weights, -30, 30)))
        slope = features.T @ (hits - totals * chance) - ridge @ weights
        curvature = (features.T * (totals * chance * (1 - chance))) @ features + ridge
        weights = np.clip(weights + np.linalg.solve(curvature, slope), -30, 30)
    logits = np.clip(features @ weights, -30, 30)
    likelihood = float((hits * logits - totals * np.logaddexp(0.0, logits)).sum())
    return likelihood, 1.0 / (1.0 + np.exp(-logits))


def smoothed_rates(values: Floats, first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Smoothed probabilities of cells of scores under x and under x'.

    Args:
        values: a score that stands for each cell, increasing, shape ``(c,)``.
        first: scores on x per cell, shape ``(c,)``.
        second: scores on x' per cell, shape ``(c,)``.

    Returns:
        Two arrays of shape ``(c,)``, each summing to about 1.
    """
    totals = first + second
    ranks = (np.cumsum(totals) - totals / 2) / totals.sum()
    inside = values[np.isfinite(values)]
    if inside.size == 0:
        return first / first.sum(), second / second.sum()
    finite = np.clip(values, inside[0], inside[-1])
    best, chance = -np.inf, np.full(values.size, first.sum() / totals.sum())
    for clip in _CLIPS:
        kept = finite[(ranks >= clip) & (ranks <= 1 - clip)]
        if kept.size < 2:
            continue
        # Halved first, as the sum of two large scores could overflow.
        line = np.clip(finite, kept[0], kept[-1]) / 2 - (kept[0] / 4 + kept[-1] / 4)
        half_width = kept[-1] / 4 - kept[0] / 4
        if half_width == 0:
            continue
        line /= half_width
        for degree in (1, 2):
            features = line[:, None] ** np.arange(degree + 1)
            likelihood, fitted = _fit(features, first, totals)
            penalty = _DEGREE_PENALTY * degree + (_CLIP_PENALTY if clip else 0.0)
            if likelihood - penalty > best:
                best, chance = likelihood - penalty, fitted
    return totals * chance / first.sum(), totals * (1 - chance) / second.sum()
