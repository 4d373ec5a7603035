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
    phi = unpacked(features)(np.array([records[name] for name in coordinates], dtype=float).T)
    arm = _best(phi, theta, root)
    return [*phi[arm].tolist(), _scaled(float(records["reward"][arm]), rewards)]


def choose_option(
    records: Mapping[str, Sequence[Any]],
    rng: np.random.Generator,
    *,
    objective: Sequence[str],
    options: Sequence[str],
    features: str,
    theta: Any,
    root: Any,
    answers: Sequence[float],
) -> list[float]:
    """The same for the own options of a study of one's own, and the author's objective.

    Args:
        records: the user's own.
        rng: the user's own.
        objective: module and name of a function of ``records``, ``rng`` and a point.
        options: those of a function of ``records`` and ``rng`` that gives points; or nothing, and
            all of the space may be chosen.
        features: Φ of a space, as :func:`packed` writes it.
        theta: θ, (m,).
        root: R of the width ‖Rᵀφ‖, (m, m).
        answers: (low, high).

    Returns:
        φ and v, m + 1 numbers.
    """
    phi_of: Any = unpacked(features)
    own = function_of(options)(records, rng) if options else phi_of.domain.candidates
    points = np.asarray(own, dtype=np.float64)
    phi = phi_of(points)
    place = _best(phi, theta, root)
    answer = float(function_of(objective)(records, rng, points[place].tolist()))
    return [*phi[place].tolist(), _scaled(answer, answers)]


def _best(phi: Any, theta: Any, root: Any) -> int:
    return int((phi @ theta + np.linalg.norm(phi @ root, axis=1)).argmax())


def _scaled(value: float, span: Sequence[float]) -> float:
    low, high = span
    return min(1.0, max(0.0, (value - low) / (high - low))) - 0.5


def function_of(name: Sequence[str]) -> Any:
    """The function of that module and name."""
    module, attribute = name
    return getattr(import_module(module), attribute)


def packed(features: FeatureMap) -> str:
    """A feature map as a text, with all that it has computed."""
    return base64.b64encode(pickle.dumps(features)).decode("ascii")


def unpacked(text: str) -> FeatureMap:
    """The feature map in a text of :func:`packed`."""
    found: FeatureMap = pickle.loads(base64.b64decode(text))
    return found
