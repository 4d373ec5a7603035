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


def _fits(features: Floats, hits: Floats, totals: Floats) -> tuple[Floats, Floats]:
    """Of models (models, cells, terms): log likelihoods and fitted chances, with a slight ridge."""
    weights, across = np.zeros(features.shape[::2]), features.swapaxes(1, 2)

    def logits() -> Floats:
        return np.clip((features @ weights[..., None])[..., 0], -30, 30)

    for _ in range(12):
        chance = 1.0 / (1.0 + np.exp(-logits()))
        slope = across @ (hits - totals * chance)[..., None] - 1e-3 * weights[..., None]
        curvature = (across * (totals * chance * (1 - chance))[:, None]) @ features
        curvature += 1e-3 * np.eye(features.shape[2])
        weights = np.clip(weights + np.linalg.solve(curvature, slope)[..., 0], -30, 30)
    odds = logits()
    likelihoods = (hits * odds - totals * np.logaddexp(0.0, odds)).sum(axis=1)
    return likelihoods, 1.0 / (1.0 + np.exp(-odds))


def smooth_rates(values: Floats, first: Floats, second: Floats) -> tuple[Floats, Floats]:
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
    lines, penalties = list[Floats](), list[float]()
    for clip in _CLIPS:
        kept = finite[(ranks >= clip) & (ranks <= 1 - clip)]
        if kept.size < 2 or (half_width := kept[-1] / 4 - kept[0] / 4) == 0:
            continue
        # Halved first, as the sum of two large scores could overflow.
        line = np.clip(finite, kept[0], kept[-1]) / 2 - (kept[0] / 4 + kept[-1] / 4)
        lines.append(line / half_width)
        penalties.append(_CLIP_PENALTY if clip else 0.0)
    chance = np.full(values.size, first.sum() / totals.sum())
    if lines:
        bases = np.stack(lines)[..., None]
        fits = [_fits(bases ** np.arange(terms), first, totals) for terms in (2, 3)]
        gains = np.stack([fits[0][0], fits[1][0] - _DEGREE_PENALTY]) - penalties
        best = int(gains.T.argmax())
        chance = fits[best % 2][1][best // 2]
    return totals * chance / first.sum(), totals * (1 - chance) / second.sum()
