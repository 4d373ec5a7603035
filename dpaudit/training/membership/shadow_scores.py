"""How shadow models judge the scores of a target model.

Shadow models are trained on random halves of the examples. LiRA (Carlini et al. 2022, "First
Principles"): for every example the scores of the models that saw it and of those that did not are
each fitted by a normal law, and the target's score is judged by their likelihood ratio (online), or
by the second law alone (offline). RMIA (Zarifzadeh, Liu and Shokri 2024) compares examples: has the
target become surer of a label than shadow models are, and by more than of the labels of others?
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.auditing.evidence.events import Flags
from dpaudit.base.errors import InputError
from dpaudit.base.validate import real_array
from dpaudit.mechanisms.pairs import Floats

_ENOUGH = 32
"""Models of a kind from which an example has a variance of its own."""


def logit_confidence(losses: ArrayLike) -> Floats:
    """Take the logit of the probability of the true label, nearly normal over models.

    Args:
        losses: cross-entropies in nats, of any shape.

    Raises:
        InputError: if a loss is negative, NaN or infinite.

    Example:
        >>> logit_confidence([0.6931471805599453]).round(12).tolist()
        [0.0]
    """
    values = real_array(losses=losses)
    if (values < 0).any():
        raise InputError(f"losses has the value {values.min()}; a cross-entropy is at least 0.")
    # log(p / (1 - p)) with p = exp(-loss); no probability is closer to 1 than a float can tell.
    floor = np.maximum(values, np.finfo(np.float64).tiny)
    logits: Floats = -floor - np.log(-np.expm1(-floor))
    return logits


def lira_online(targets: Floats, scores: Floats, masks: Flags) -> Floats:
    """Log of the fitted density with the example over that without, for each target model.

    Args:
        targets: scores of the target models, shape (t, n).
        scores: scores of the shadow models, shape (k, n).
        masks: on which examples each shadow model was trained, shape (k, n).

    Returns:
        Shape (t, n).

    Raises:
        InputError: if the shapes differ, or an example was in all shadow models or in none.
    """
    check_shadows(targets, scores, masks)
    inside, outside = _laws(scores, masks), _laws(scores, ~masks)
    return _log_density(targets, *inside) - _log_density(targets, *outside)


def lira_offline(targets: Floats, scores: Floats, masks: Flags) -> Floats:
    """Tell how far above the scores of models without the example, in standard deviations.

    Increasing in the one-sided probability of Carlini et al. 2022, equation 4; arguments and shapes
    are those of :func:`lira_online`.

    Raises:
        InputError: if the shapes differ, or an example was in all shadow models.
    """
    check_shadows(targets, scores, masks, inside=False)
    mean, deviation = _laws(scores, ~masks)
    distances: Floats = (targets - mean) / deviation
    return distances


def check_shadows(targets: Floats, scores: Floats, masks: Flags, inside: bool = True) -> None:
    """Refuse scores of shadow models that do not fit, or that leave an example out.

    Raises:
        InputError: if the shapes differ, or an example was in all shadow models, or (where
            ``inside`` is wanted) in none.
    """
    if scores.ndim != 2 or scores.shape != masks.shape or targets.shape[1:] != scores.shape[1:]:
        raise InputError(
            f"targets has shape {targets.shape}, scores {scores.shape} and masks {masks.shape}; "
            "they must be (t, n), (k, n) and (k, n)."
        )
    for wanted, flags, words in ((True, ~masks, "in all"), (inside, masks, "in none")):
        unseen = ~flags.any(axis=0)
        if wanted and unseen.any():
            raise InputError(
                f"example {int(unseen.argmax())} was {words} of the {len(masks)} shadow models; "
                "train more of them."
            )


def _laws(scores: Floats, chosen: Flags) -> tuple[Floats, Floats]:
    """Fit mean and standard deviation of the chosen models' scores, shape (n,).

    With few models a variance of one example is too uncertain; all examples then share one.
    """
    count = chosen.sum(axis=0)
    mean = np.where(chosen, scores, 0.0).sum(axis=0) / count
    squares = np.where(chosen, np.square(scores - mean), 0.0).sum(axis=0)
    pooled = squares.sum() / max(1, int(count.sum()) - count.size)
    own = squares / np.maximum(count - 1, 1)
    variance = np.where(count >= _ENOUGH, own, pooled)
    return mean, np.sqrt(np.maximum(variance, 1e-12 * max(1.0, float(np.square(mean).max()))))


def _log_density(values: Floats, mean: Floats, deviation: Floats) -> Floats:
    logs: Floats = -0.5 * np.square((values - mean) / deviation) - np.log(deviation)
    return logs


_IN_PER_OUT = 0.3
"""How much surer models are of what they were trained on: the paper's a, which it tunes."""


def rmia_online(targets: Floats, scores: Floats, masks: Flags) -> Floats:
    """Give the share of all examples whose relative confidence is no larger, for each target model.

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
    """Do so by shadow models without the example: ``p(x) = ((1 + a) p_out + 1 - a) / 2``.

    Arguments and shapes are those of :func:`rmia_online`.

    Raises:
        InputError: if the shapes differ, or an example was in all shadow models.
    """
    check_shadows(targets, scores, masks, inside=False)
    outside = _mean(scores, ~masks)
    return _relative(targets, ((1 + _IN_PER_OUT) * outside + 1 - _IN_PER_OUT) / 2)


def _mean(scores: Floats, chosen: Flags) -> Floats:
    """Return the mean confidence of the chosen models in each label, shape (n,)."""
    from scipy.special import expit

    mean: Floats = np.where(chosen, expit(scores), 0.0).sum(axis=0) / chosen.sum(axis=0)
    return np.maximum(mean, np.finfo(np.float64).tiny)


def _relative(targets: Floats, usual: Floats) -> Floats:
    from scipy.special import log_expit
    from scipy.stats import rankdata

    ratios = log_expit(targets) - np.log(usual)
    shares: Floats = rankdata(ratios, method="max", axis=1) / ratios.shape[1]
    return shares
