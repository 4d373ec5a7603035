"""What a user of a joint study does: choose an arm of the own decision set by what was released.

It runs in a process of its own for every user, which runs this module and that of the feature map
anew. What it returns is clipped and encoded by whoever holds the data.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Mapping, Sequence
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
    arm = int((phi @ theta + np.linalg.norm(phi @ root, axis=1)).argmax())
    low, high = rewards
    value = min(1.0, max(0.0, (float(records["reward"][arm]) - low) / (high - low))) - 0.5
    return [*phi[arm].tolist(), value]


def packed(features: FeatureMap) -> str:
    """A feature map as a text, with all that it has computed."""
    return base64.b64encode(pickle.dumps(features)).decode("ascii")


def unpacked(text: str) -> FeatureMap:
    """The feature map in a text of :func:`packed`."""
    found: FeatureMap = pickle.loads(base64.b64decode(text))
    return found
