"""Robust membership inference with few shadow models (Zarifzadeh, Liu and Shokri 2024).

An example is compared with other examples: has the target model become surer of its label than
shadow models are on average, and by more than of the labels of the others?
"""

from __future__ import annotations

import numpy as np

from dpaudit.auditing.evidence.types import Flags
from dpaudit.mechanisms.pairs import Floats
from dpaudit.training.membership.lira import check_shadows

_IN_PER_OUT = 0.3
"""How much surer models are of what they were trained on: the paper's a, which it tunes."""


def rmia_online(targets: Floats, scores: Floats, masks: Flags) -> Floats:
    """The share of all examples whose relative confidence is no larger, for each target model.

    ``Pr_z[LR(x, z) >= 1]`` with their pairwise ratio ``LR(x, z) = (p(x|θ) / p(x)) / (p(z|θ) /
    p(z))``, z drawn from the examples under attack, and p(x) the mean over shadow models with the
    example and without it, in equal parts.

    Args:
        targets: scores of the target models, shape (t, n): logits of the confidence in the label,
            as :func:`~dpaudit.training.membership.logit_confidence` gives them.
        scores: scores of the shadow models, shape (k, n).
        masks: on which examples each shadow model was trained, shape (k, n).

    Returns:
        Shape (t, n), in (0, 1].

    Raises:
        InputError: if the shapes differ, or an example was in all shadow models or in none.

    Example:
        >>> masks = np.array([[True, False], [False, True]])
        >>> rmia_online(np.array([[3.0, 0.0]]), np.zeros((2, 2)), masks).tolist()
        [[1.0, 0.5]]
    """
    check_shadows(targets, scores, masks)
    return _relative(targets, (_mean(scores, masks) + _mean(scores, ~masks)) / 2)


def rmia_offline(targets: Floats, scores: Floats, masks: Flags) -> Floats:
    """The same by shadow models without the example: ``p(x) = ((1 + a) p_out(x) + 1 - a) / 2``.

    Arguments and shapes are those of :func:`rmia_online`.

    Raises:
        InputError: if the shapes differ, or an example was in all shadow models.
    """
    check_shadows(targets, scores, masks, inside=False)
    outside = _mean(scores, ~masks)
    return _relative(targets, ((1 + _IN_PER_OUT) * outside + 1 - _IN_PER_OUT) / 2)


def _mean(scores: Floats, chosen: Flags) -> Floats:
    """Mean confidence of the chosen models in each label, shape (n,)."""
    from scipy.special import expit

    mean: Floats = np.where(chosen, expit(scores), 0.0).sum(axis=0) / chosen.sum(axis=0)
    return np.maximum(mean, np.finfo(np.float64).tiny)


def _relative(targets: Floats, usual: Floats) -> Floats:
    from scipy.special import log_expit
    from scipy.stats import rankdata

    ratios = log_expit(targets) - np.log(usual)
    shares: Floats = rankdata(ratios, method="max", axis=1) / ratios.shape[1]
    return shares
