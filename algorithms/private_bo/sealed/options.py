"""What a user's device does in a study of one's own under local joint trust.

It runs in a process of its own for every user: it chooses among options that the device alone
knows, and asks the author's objective about the one that it chose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from private_bo.own.server import LandmarkFeatures
from private_bo.sealed.choices import unpacked


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
    """Features of the option of largest mean plus width, and its answer scaled to [−½, ½].

    Args:
        records: the user's own.
        rng: the user's own.
        objective: module and name of a function of ``records``, ``rng`` and a point.
        options: those of a function of ``records`` and ``rng`` that gives points; or nothing, and
            all of the space may be chosen.
        features: Φ of a space, as :func:`~private_bo.sealed.choices.packed` writes it.
        theta: θ, (m,).
        root: R of the width ‖Rᵀφ‖, (m, m).
        answers: (low, high).

    Returns:
        φ and v, m + 1 numbers.
    """
    phi_of = unpacked(features)
    assert isinstance(phi_of, LandmarkFeatures)
    own = _function(options)(records, rng) if options else phi_of.domain.candidates
    points = np.asarray(own, dtype=np.float64)
    phi = phi_of(points)
    place = int((phi @ theta + np.linalg.norm(phi @ root, axis=1)).argmax())
    low, high = answers
    answer = float(_function(objective)(records, rng, points[place].tolist()))
    return [*phi[place].tolist(), min(1.0, max(0.0, (answer - low) / (high - low))) - 0.5]


def _function(name: Sequence[str]) -> Any:
    module, attribute = name
    return getattr(import_module(module), attribute)
