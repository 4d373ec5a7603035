"""What scores of canaries show of ε: whatever a training does, and if its noise is Gaussian."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import beta

from audits.opacus.audited import Setting
from dpaudit import privacy_curve
from dpaudit.auditing.evidence.events import expected_lower_bound, pilot_size
from dpaudit.auditing.evidence.joint import joint_lower_bound
from dpaudit.auditing.evidence.types import Event

Floats = NDArray[np.float64]
_GRID = np.linspace(0.01, 12.0, 240)
_NOISES = np.geomspace(0.5, 8.0, 70)
"""Of the declared noise; each is 4 % above the one before."""


@dataclass(frozen=True)
class Shown:
    """Lower bounds on ε, each at the stated confidence.

    Attributes:
        free: whatever the training does.
        family: if its curve is that of its plan with noise of some scale.
    """

    free: float
    family: float


def shown(members: Floats, others: Floats, setting: Setting, *, confidence: float = 0.95) -> Shown:
    """Of scores (n,) of canaries that were in the data, and of as many that were not.

    The plan's own law chooses the threshold of the first bound, so that all scores test it; for the
    second one a tenth of them does.
    """
    free = _event(members, others, setting, confidence)
    return Shown(free, _noise(members, others, setting, confidence))


def _event(members: Floats, others: Floats, setting: Setting, confidence: float) -> float:
    """From an event of large scores, for which a high bound is expected in nearly each audit."""
    likelier, other = _expected(setting)
    thresholds = np.quantile(likelier, np.linspace(0.02, 0.999, 400))
    p, q = (
        (np.searchsorted(np.sort(-side), -thresholds, side="right") + 0.5) / (side.size + 1)
        for side in (likelier, other)
    )
    margin = -2 * float(ndtri(1 - confidence)) * members.size**-0.5
    best = int(expected_lower_bound(p, q, setting.delta, margin).argmax())
    event = Event(lower=float(thresholds[best]))
    return joint_lower_bound(event.count(members, others), setting.delta, confidence)


@cache
def _expected(setting: Setting) -> tuple[Floats, Floats]:
    """Scores of members and of others, drawn by the plan's own law."""
    drawing, shape = np.random.default_rng(0), (100_000, setting.batches * setting.epochs)
    drawn = drawing.random(shape) < 1 / setting.batches
    noise = (drawing.normal(0, setting.noise, shape) for _ in range(2))
    return setting.likelihood(drawn + next(noise)), setting.likelihood(next(noise))


def _noise(members: Floats, others: Floats, setting: Setting, confidence: float) -> float:
    """ε of the plan at the largest noise that one threshold does not contradict.

    At most TPR ≤ e^ε FPR + δ(ε) for every ε, with Clopper-Pearson ends of both rates.
    """
    cut = pilot_size(members.size)
    places = np.sort(np.concatenate([members[:cut], others[:cut]]))
    gains = np.searchsorted(np.sort(others[:cut]), places) - np.searchsorted(
        np.sort(members[:cut]), places
    )
    threshold = places[int(gains.argmax())]
    n, error = members.size - cut, (1 - confidence) / 2
    hits, alarms = (int((side[cut:] >= threshold).sum()) for side in (members, others))
    least = float(beta.ppf(error, hits, n - hits + 1)) if hits else 0.0
    most = float(beta.isf(error, alarms + 1, n - alarms)) if alarms < n else 1.0

    low, high = 0, len(_NOISES)
    while low < high:  # the first noise that is contradicted
        middle = (low + high) // 2
        deltas = _curve(setting, middle)
        free = bool((least <= np.exp(_GRID) * most + deltas).all())
        low, high = (middle + 1, high) if free else (low, middle)
    return 0.0 if high == len(_NOISES) else _at(setting, high).certified


def _at(setting: Setting, place: int) -> Setting:
    return replace(setting, noise=setting.noise * float(_NOISES[place]))


@cache
def _curve(setting: Setting, place: int) -> Floats:
    curve: Floats = privacy_curve(_at(setting, place).plan)(_GRID)
    return curve
