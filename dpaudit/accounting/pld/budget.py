"""What separates a composed law on a grid from the exact one, added up."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpaudit.accounting.pld.discretise import UNIT, GridLoss
from dpaudit.accounting.pld.spectrum import Spectrum, Tilt


@dataclass(frozen=True)
class Budget:
    """Everything that separates a composed law on a grid from the exact one.

    Attributes:
        log_mgf: ln E[e^(θS̃)] of the finite part.
        above: tilted mass above the window, at most.
        below: tilted mass below the window, at most.
        excess: tilted mass that earlier stages may have added or lost.
        infinite: probability of infinite loss, truncation included.
        truly_infinite: probability of infinite loss.
        displaced: probability that truncation moved any loss.
        moved: tilted mass moved up against rounding, times the distance.
        relative: relative rounding error of every mass.
        lift: bound on the sum of threshold errors, in units of loss.
        spread: s of the coupling.
        drift: m of the coupling.
    """

    log_mgf: float
    above: float
    below: float
    excess: float
    infinite: float
    truly_infinite: float
    displaced: float
    moved: float
    relative: float
    lift: float
    spread: float
    drift: float


class Tally:
    """Sums the error terms of single losses into the budget of their composition."""

    def __init__(self) -> None:
        self._logs = np.zeros(3)
        self._finite = self._truly_finite = 0.0
        self._displaced = self._moved = self._excess = 0.0
        self._lift = self._variance = self._drift = 0.0
        self._relative = 1e-12

    def add(self, loss: GridLoss, spectrum: Spectrum, count: int) -> None:
        """``count`` more uses of one loss."""
        self._logs += count * np.array(spectrum.logs)
        self._finite += count * _log_complement(loss.infinite)
        self._truly_finite += count * _log_complement(loss.truly_infinite)
        self._displaced += count * loss.displaced
        self._moved += count * (spectrum.moved + loss.carried)
        self._excess += count * loss.excess
        self._relative += count * (UNIT * (16 + 4 * spectrum.exponent) + loss.relative)
        self._lift += count * loss.lift
        self._variance += count * loss.variance
        self._drift += count * loss.drift

    def budget(self, tilt: Tilt, bottom: float, top: float) -> Budget:
        """The error budget of all that has been added, on a window [bottom, top)."""
        log, log_down, log_up = (float(value) for value in self._logs)
        return Budget(
            log_mgf=log,
            above=_chernoff(log, log_up, -tilt.up * top),
            below=_chernoff(log, log_down, tilt.down * bottom),
            excess=self._excess * (1 + 1e-6),
            infinite=-math.expm1(self._finite) * (1 + 1e-12),
            truly_infinite=-math.expm1(self._truly_finite) * (1 - 1e-12),
            displaced=self._displaced * (1 + 1e-12),
            moved=self._moved * (1 + 1e-6),
            relative=self._relative,
            lift=self._lift * (1 + 1e-12),
            spread=math.sqrt(self._variance) * (1 + 1e-12),
            drift=self._drift * (1 + 1e-12),
        )


def _chernoff(log: float, log_end: float, moved: float) -> float:
    """A bound on the tilted mass beyond an end, rounded up."""
    rounding = 1e-12 * (1 + abs(log) + abs(log_end))
    return math.exp(min(log_end - log + moved + rounding, 0.0))


def _log_complement(probability: float) -> float:
    return math.log1p(-probability) if probability < 1 else -math.inf
