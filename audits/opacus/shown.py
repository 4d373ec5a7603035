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

    A tenth of them chooses thresholds, the others test them. Both directions of the first bound
    share the error rate.
    """
    each = 1 - (1 - confidence) / 2
    both = (members, others), (-others, -members)
    free = max(_event(*side, setting.delta, each) for side in both)
    return Shown(free, _noise(members, others, setting, confidence))


def _event(likelier: Floats, other: Floats, delta: float, confidence: float) -> float:
    """From an event of large scores."""
    cut = pilot_size(likelier.size)
    thresholds = np.quantile(likelier[:cut], np.linspace(0.02, 0.999, 200))
    p, q = (
        (np.searchsorted(np.sort(-side[:cut]), -thresholds, side="right") + 0.5) / (cut + 1)
        for side in (likelier, other)
    )
    margin = -float(ndtri(1 - confidence)) * (likelier.size - cut) ** -0.5 + cut**-0.5
    best = int(expected_lower_bound(p, q, delta, margin).argmax())
    event = Event(lower=float(thresholds[best]))
    return joint_lower_bound(event.count(likelier[cut:], other[cut:]), delta, confidence)


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
