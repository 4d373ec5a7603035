"""What a user of a joint study does: choose among options of the own by what was released.

It runs in a process of its own for every user, which runs this module and that of the feature map
anew. What it returns is clipped and encoded by whoever holds the data.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from private_bo.gp.features import FeatureMap


def choose(
    records: Mapping[str, Sequence[Any]],
    rng: np.random.Generator,
    *,
    coordinates: Sequence[str],
    features: str,
    theta: Any,
    root: Any,
    rewards: Sequence[float],
) -> list[float]:
    """Features of the arm of largest mean plus width, and its reward scaled to [−½, ½].

    Args:
        records: an arm a row: its coordinates, and the ``reward`` that the user would answer.
        rng: not used.
        coordinates: columns of an arm.
        features: Φ, as :func:`packed` writes it.
        theta: θ, (m,).
        root: R of the width ‖Rᵀφ‖, (m, m).
        rewards: (low, high).

    Returns:
        φ and v, m + 1 numbers.
    """
    phi_of: FeatureMap = unpacked(features)
    phi = phi_of(np.array([records[name] for name in coordinates], dtype=float).T)
    arm = int((phi @ theta + np.linalg.norm(phi @ root, axis=1)).argmax())
    return [*phi[arm].tolist(), _scaled(float(records["reward"][arm]), rewards)]


def choose_level(
    records: Mapping[str, Sequence[Any]],
    rng: np.random.Generator,
    *,
    objective: Sequence[str],
    options: Sequence[str],
    features: str,
    theta: Any,
    place: Any,
    answers: Sequence[float],
    near: float,
    thresholds: Sequence[float],
) -> float:
    """The level of the answer about the option of largest θᵀΦ, or 0 if it is far from a place.

    Args:
        records: the user's own.
        rng: the user's own.
        objective: module and name of a function of ``records``, ``rng`` and a point.
        options: those of a function of ``records`` and ``rng`` that gives points; or nothing, and
            all of the space may be chosen.
        features: Φ of a space, as :func:`packed` writes it.
        theta: θ, (m,).
        place: (d,).
        answers: (low, high).
        near: a coin: below how large a share an option is near.
        thresholds: above how many of them an answer in [−½, ½] lies is its level.
    """
    phi_of = unpacked(features)
    own = function_of(options)(records, rng) if options else phi_of.domain.candidates
    points = np.asarray(own, dtype=np.float64)
    chosen, share = phi_of.chosen(points, np.asarray(theta), np.asarray(place))
    answer = float(function_of(objective)(records, rng, points[chosen].tolist()))
    above = sum(_scaled(answer, answers) > each for each in thresholds)
    return float(1 + above) if near < share else 0.0


def _scaled(value: float, span: Sequence[float]) -> float:
    low, high = span
    return min(1.0, max(0.0, (value - low) / (high - low))) - 0.5


def function_of(name: Sequence[str]) -> Any:
    """The function of that module and name."""
    module, attribute = name
    return getattr(import_module(module), attribute)


def packed(public: object) -> str:
    """A public object, such as a feature map, as a text, with all that it has computed."""
    return base64.b64encode(pickle.dumps(public)).decode("ascii")


def unpacked(text: str) -> Any:
    """The object in a text of :func:`packed`."""
    return pickle.loads(base64.b64decode(text))
