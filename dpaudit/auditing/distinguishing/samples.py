"""Outputs whose noise can be made smaller, for forecasts of what would have been found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.auditing.distinguishing.scores import Score, WhiteBox, score_outputs
from dpaudit.auditing.evidence.types import Both
from dpaudit.mechanisms.pairs import Floats

_SIZE = 20_000


@dataclass(frozen=True)
class Sample:
    """Outputs of both sides with continuous noise, and what they are without it.

    Attributes:
        outputs: of x and of x', each shape (n, …).
        centres: the noiseless output of each side, as well as it is known.
    """

    outputs: Both
    centres: tuple[Any, Any]

    @classmethod
    def of(cls, score: Score, outputs: Both) -> Sample | None:
        """From the declared mechanism where the score knows it, else from outputs of the pilot.

        Returns:
            The sample, or None if the noise is not continuous, so that "smaller" has no meaning.
        """
        centres: tuple[Any, Any]
        if not isinstance(score, WhiteBox):
            with np.errstate(over="ignore", invalid="ignore"):
                centres = np.median(outputs[0], axis=0), np.median(outputs[1], axis=0)
        else:
            rng, mechanism = np.random.default_rng(0), score.mechanism
            x, x_prime = (
                mechanism.release_many(value, _SIZE, rng).astype(np.float64)
                for value in (score.x, score.x_prime)
            )
            outputs = x, x_prime
            centres = mechanism.prepare(score.x), mechanism.prepare(score.x_prime)
        continuous = all(_continuous(side) for side in outputs)
        return cls(outputs, centres) if continuous else None

    def scores(self, score: Score, factor: float) -> Both:
        """Scores of the outputs with their noise multiplied by a factor; infinities stay."""
        first, second = (
            score_outputs(score, _shrunk(side, centre, factor))
            for side, centre in zip(self.outputs, self.centres, strict=True)
        )
        return first, second


def _shrunk(side: Floats, centre: Any, factor: float) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        moved: Floats = centre + factor * (side - centre)
    return np.where(np.isfinite(moved), moved, side)


def _continuous(outputs: Floats) -> bool:
    """Tell whether there are several outputs, and most differ from each other."""
    if len(outputs) < 2:
        return False
    return len(np.unique(outputs.reshape(len(outputs), -1), axis=0)) > 0.9 * len(outputs)
