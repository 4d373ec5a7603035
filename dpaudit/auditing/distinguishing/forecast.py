"""What silence is worth: the least fault that an audit would have found.

Forecasts, not evidence: they are computed from the rates that a pilot showed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.distinguishing.nulls import Null, PointNull
from dpaudit.auditing.distinguishing.samples import Sample
from dpaudit.auditing.distinguishing.scores import Score
from dpaudit.auditing.evidence.bets import quantile_edges, tail_bets
from dpaudit.auditing.evidence.eprocess import curve_points
from dpaudit.auditing.evidence.events import expected_lower_bound
from dpaudit.auditing.evidence.power import power
from dpaudit.auditing.evidence.types import Direction, Event, PairCounts
from dpaudit.certificate import Claim
from dpaudit.errors import InputError

__all__ = ["Forecast", "power_statement"]

Floats = NDArray[np.float64]
Both = tuple[Floats, Floats]
Curve = Callable[[Any], Any]
Family = Callable[[float], tuple[float, float]]

WANTED_POWER = 0.9
GRAVEST_NOISE = 0.95
CAUTION = 4.0  # standard errors, so that a lucky rare tail is not chosen
MANY = 5  # expected hits from which the normal law serves for a forecast
_QUANTILE = 1.2815515655446004  # of the standard normal at WANTED_POWER


@dataclass(frozen=True)
class Forecast:
    """What would have been detected, from an audit that refuted nothing.

    The event's rates are those of the test runs, brought back onto the claim where chance took them
    beyond, so that a forecast never promises more than is true.

    Attributes:
        score: as used.
        sample: outputs with continuous noise, or None.
        point: the test of (ε, δ) alone.
        claim: under test.
        error: of that test.
        curve: the claimed curve, if it was tested as well.
        curve_error: of that test.
    """

    score: Score
    sample: Sample | None
    point: Null
    claim: Claim
    error: float
    curve: Curve | None
    curve_error: float

    @property
    def runs(self) -> int:
        """Test runs a side."""
        return self.point.runs

    def rates(self) -> tuple[float, float]:
        """(p, q) of the tested event, within the claim."""
        counts = self._counts()
        q = (counts.other_hits + 0.5) / (counts.other_runs + 1.0)
        p = (counts.hits + 0.5) / (counts.runs + 1.0)
        return min(p, math.exp(self.claim.epsilon) * q + self.claim.delta), q

    def epsilon(self) -> float | None:
        """The least true ε at the tested event that would have been detected, if there is one."""
        if not isinstance(self.point, PointNull):
            return None
        _, rate = self.rates()

        def family(epsilon: float) -> tuple[float, float]:
            q = min(rate, (1 - self.claim.delta) * math.exp(-epsilon) * 0.999)
            return math.exp(epsilon) * q + self.claim.delta, q

        return self._least(family, self.claim.epsilon, 3 * self.claim.epsilon + 5)

    def noise(self) -> float | None:
        """The least share by which the noise could be smaller and be detected; None if discrete.

        Every other run of the sample, drawn towards its centre, chooses the event as a pilot would;
        the others give its rates.
        """
        if self.sample is None or not isinstance(self.point, PointNull):
            return None

        def family(share: float) -> tuple[float, float]:
            first, second = self.shrunk(share)
            event = self._best_tail(first[::2], second[::2])
            counts = event.count(first[1::2], second[1::2])
            return (
                (counts.hits + 0.5) / (counts.runs + 1.0),
                (counts.other_hits + 0.5) / (counts.other_runs + 1.0),
            )

        return self._least(family, 0.0, GRAVEST_NOISE)

    def noise_by_bets(self, below: float | None) -> float | None:
        """The same for the e-process, if there was one and it is less than ``below``."""
        if self.curve is not None:
            points, error = curve_points(self.curve), self.curve_error
        elif not isinstance(self.point, PointNull):
            claim = self.claim
            constant = lambda epsilons: np.full_like(epsilons, claim.delta)  # noqa: E731
            points, error = curve_points(constant, epsilons=[claim.epsilon]), self.error
        else:
            return below
        if self.sample is None:
            return None
        low, high = 0.0, GRAVEST_NOISE if below is None else below
        if not _curve_detects(points, self.shrunk(high), self.runs, error):
            return below
        while high - low > 0.005:
            middle = (low + high) / 2
            if _curve_detects(points, self.shrunk(middle), self.runs, error):
                high = middle
            else:
                low = middle
        return high

    def _counts(self) -> PairCounts:
        counts = self.point.counts if isinstance(self.point, PointNull) else None
        if counts is None:
            raise InputError("the audit has no counts of an event; run its joint test first.")
        return counts

    def shrunk(self, share: float) -> Both:
        """Scores of the sample with noise that is smaller by this share."""
        assert self.sample is not None
        return self.sample.scores(self.score, 1 - share)

    def _best_tail(self, first: Floats, second: Floats) -> Event:
        """The tail, in either direction, that promises most; quicker than a pilot's full choice."""
        pooled = np.sort(np.concatenate([first, second]))
        cuts = np.unique(pooled[np.linspace(0, pooled.size - 1, 128).astype(int)])
        above = [
            1 - (np.searchsorted(np.sort(side), cuts) + 0.5) / (side.size + 1)
            for side in (first, second)
        ]
        margin = _normal_quantile(self.error) / math.sqrt(self.runs)
        margin += CAUTION / math.sqrt(first.size)
        tails = (
            (Direction.FORWARD, above[0], above[1], True),
            (Direction.BACKWARD, 1 - above[1], 1 - above[0], False),
            (Direction.BACKWARD, above[1], above[0], True),
            (Direction.FORWARD, 1 - above[0], 1 - above[1], False),
        )
        best, chosen = -math.inf, Event()
        for direction, p, q, upper in tails:
            promises = expected_lower_bound(p, q, self.claim.delta, margin)
            index = int(promises.argmax())
            if promises[index] > best:
                best, cut = float(promises[index]), float(cuts[index])
                below = float(np.nextafter(cut, -np.inf))
                chosen = (
                    Event(lower=cut, direction=direction)
                    if upper
                    else Event(upper=below, direction=direction)
                )
        return chosen

    def _least(self, family: Family, harmless: float, gravest: float) -> float | None:
        """The mildest fault that is detected: by the normal law, made sure exactly for few hits."""
        margin = (float(_normal_quantile(self.error)) + _QUANTILE) / math.sqrt(self.runs)

        def promising(fault: float) -> bool:
            bound = expected_lower_bound(*family(fault), self.claim.delta, margin)
            return float(bound) > self.claim.epsilon

        def detected(fault: float) -> bool:
            p, q = family(fault)
            if q * self.runs >= MANY:
                return True
            claim = self.claim
            found = power(p, q, self.runs, self.runs, claim.epsilon, claim.delta, self.error)
            return found >= WANTED_POWER

        low, high = harmless, gravest
        while high - low > 0.002 * (gravest - harmless):
            middle = (low + high) / 2
            low, high = (low, middle) if promising(middle) else (middle, high)
        step = 0.01 * (gravest - harmless)
        while high < gravest and not detected(high):
            high, step = high + step, 2 * step
        return high if high < gravest else None


def power_statement(forecast: Forecast) -> str:
    """The least fault that would have been detected with probability 0.9, in words."""
    epsilon, noise = forecast.epsilon(), forecast.noise_by_bets(forecast.noise())
    faults = [
        *([f"noise {math.ceil(100 * noise)} % smaller"] if noise is not None else []),
        *([f"a true ε of {epsilon:.3g} at the tested event"] if epsilon is not None else []),
    ]
    if not faults:
        return (
            f"No fault would have been detected with probability {WANTED_POWER} at these runs; "
            "give more runs."
        )
    text = (
        f"{', or '.join(faults)}, would have been detected with probability {WANTED_POWER} at "
        "these runs."
    )
    return text[0].upper() + text[1:]


def _normal_quantile(error: float) -> float:
    from scipy.special import ndtri

    return -float(ndtri(error))


def _curve_detects(points: Any, scores: Both, runs: int, error: float) -> bool:
    """Whether one of the bets would probably have grown to 1/error on so many pairs."""
    edges = quantile_edges(np.concatenate(scores))
    if edges.size == 0:
        return False
    bets = tail_bets(points, edges.size + 1)
    p, q = (
        np.bincount(np.searchsorted(edges, side, side="right"), minlength=edges.size + 1)
        / len(side)
        for side in scores
    )
    cells = np.outer(p, q).ravel()
    logs = bets.log_factors.reshape(len(bets.log_prior), -1)
    growth = logs @ cells
    spread = np.sqrt(np.maximum(np.square(logs) @ cells - growth**2, 0.0))
    wealth = bets.log_prior + runs * growth - _QUANTILE * math.sqrt(runs) * spread
    return bool(wealth.max() >= -math.log(error))
