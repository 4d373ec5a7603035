"""What silence is worth: the least fault that an audit would have found.

Forecasts, not evidence: they are computed from the rates that a pilot showed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.auditing.distinguishing.design import Design
from dpaudit.auditing.distinguishing.nulls import Null, PointNull
from dpaudit.auditing.distinguishing.samples import Sample
from dpaudit.auditing.distinguishing.scores import Score
from dpaudit.auditing.evidence.bets import quantile_edges, tail_bets
from dpaudit.auditing.evidence.eprocess import curve_points
from dpaudit.auditing.evidence.events import choose_event, expected_lower_bound
from dpaudit.auditing.evidence.joint import single_ratio
from dpaudit.auditing.evidence.power import power
from dpaudit.auditing.evidence.types import Both
from dpaudit.mechanisms.pairs import Floats

Family = Callable[[float], tuple[float, float]]

WANTED_POWER = 0.9
GRAVEST_NOISE = 0.95
PILOTS = 12
MANY = 50  # expected hits from which the normal law serves for a forecast
_NO_VERDICT = "this is no verdict on the code."
_QUANTILE = 1.2815515655446004  # of the standard normal at WANTED_POWER


@dataclass(frozen=True)
class Forecast:
    """The least faults that would have been detected, from an audit that refuted nothing.

    The event's rates are those of the test runs, brought back onto the claim where chance took them
    beyond, so that a forecast never promises more than is true.

    Attributes:
        score: as used.
        sample: outputs with continuous noise, or None.
        point: the test of (ε, δ) alone.
        design: the claim, the claimed curve if it was tested as well, and the errors of both tests.
        pilot: runs a side on which the event was chosen.
    """

    score: Score
    sample: Sample | None
    point: Null
    design: Design
    pilot: int

    @property
    def runs(self) -> int:
        """Test runs a side."""
        return self.point.runs

    def rates(self) -> tuple[float, float]:
        """(p, q) of the tested event, within the claim."""
        assert isinstance(self.point, PointNull)
        assert self.point.counts is not None
        p, q = self.point.counts.shrunk
        return min(p, math.exp(self.design.claim.epsilon) * q + self.design.claim.delta), q

    def epsilon(self) -> float | None:
        """The least ln((p − δ)/q) of the tested event that would have been detected, if any."""
        if not isinstance(self.point, PointNull) or self.point.is_certain:
            return None
        _, rate = self.rates()

        def family(epsilon: float) -> tuple[float, float]:
            q = min(rate, (1 - self.design.claim.delta) * math.exp(-epsilon) * 0.999)
            return math.exp(epsilon) * q + self.design.claim.delta, q

        return self._least(family, self.design.claim.epsilon, 3 * self.design.claim.epsilon + 5)

    def noise(self) -> float | None:
        """The least share by which the noise could be smaller and be detected; None if discrete.

        Pilots of the audit's own size, drawn again from the sample, choose events as it would; what
        they leave of the sample gives the events' rates.
        """
        if self.sample is None or not isinstance(self.point, PointNull):
            return None
        return _least_share(self._found_by_event)

    def _found_by_event(self, share: float) -> bool:
        """Tell whether the test of an event would find noise that is smaller by this share."""
        sides = self.shrunk(share)
        drawn = min(self.pilot, *(side.size // 2 for side in sides))
        if drawn < 1:
            return False
        rng = np.random.default_rng(0)
        powers = [self._power_of_pilot(sides, drawn, rng) for _ in range(PILOTS)]
        return float(np.mean(powers)) >= WANTED_POWER

    def _power_of_pilot(self, sides: Both, drawn: int, rng: np.random.Generator) -> float:
        """The chance that the event is refuted that a pilot of so many runs a side chooses.

        The rest of the sample gives its rates, which count as lucky by one standard error.
        """
        from scipy.special import ndtr

        mixed = [rng.permutation(side) for side in sides]
        pilot, rest = [side[:drawn] for side in mixed], [side[drawn:] for side in mixed]
        delta, runs, error = self.design.claim.delta, self.runs, self.design.point_error
        event = choose_event(pilot[0], pilot[1], delta, test_runs=runs, confidence=1 - error)
        counts = event.count(*rest)
        p, q = counts.shrunk
        # The root of the statistic is about normal with spread 1, also where hits are few.
        ratio = single_ratio(p * runs, q * runs, runs, runs, self.design.claim.epsilon, delta)
        luck = math.sqrt(runs / min(counts.runs, counts.other_runs))
        return float(ndtr(math.sqrt(2 * ratio) - luck - _normal_quantile(error)))

    def noise_by_bets(self, below: float | None) -> float | None:
        """The same for the e-process, if there was one and it is less than ``below``."""
        if hasattr(self.design.curve, "rates"):  # whose test does not bet
            return below
        if self.design.curve is not None:
            points, error = curve_points(self.design.curve), self.design.curve_error
        elif not isinstance(self.point, PointNull):
            claim, error = self.design.claim, self.design.point_error
            constant = lambda epsilons: np.full_like(epsilons, claim.delta)  # noqa: E731
            points = curve_points(constant, epsilons=[claim.epsilon])
        else:
            return below
        if self.sample is None:
            return None
        found = _least_share(
            lambda share: _curve_detects(points, self.shrunk(share), self.runs, error)
        )
        return found if below is None or (found is not None and found < below) else below

    def shrunk(self, share: float) -> Both:
        """Scores of the sample with noise that is smaller by this share."""
        assert self.sample is not None
        return self.sample.scores(self.score, 1 - share)

    def _least(self, family: Family, harmless: float, gravest: float) -> float | None:
        """The mildest fault that is detected: by the normal law, made sure exactly for few hits."""
        claim, error = self.design.claim, self.design.point_error
        margin = 1.02 * (_normal_quantile(error) + _QUANTILE) / math.sqrt(self.runs)

        def promising(fault: float) -> bool:
            bound = expected_lower_bound(*family(fault), claim.delta, margin)
            return float(bound) > claim.epsilon

        def detected(fault: float) -> bool:
            p, q = family(fault)
            if q * self.runs >= MANY:
                return True
            found = power(p, q, self.runs, claim.epsilon, claim.delta, error)
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
    """The least fault that would have been detected with probability 0.9, in words.

    They speak of the event that was tested, and never of the code: other events were not tested.
    """
    epsilon, noise = forecast.epsilon(), forecast.noise_by_bets(forecast.noise())
    delta = forecast.design.claim.delta
    faults = [] if noise is None else [f"noise {math.ceil(100 * noise)} % smaller"]
    if epsilon is not None:
        less = f" (the larger less δ = {delta:g})" if delta else ""
        faults.append(
            f"a ratio of {_ratio(epsilon)} between the tested event's probabilities{less}"
        )
    if not faults and isinstance(forecast.point, PointNull) and forecast.point.is_certain:
        return f"No event was tested, so that no fault would have been detected; {_NO_VERDICT}"
    said = ", or ".join(faults) + "," * (len(faults) > 1) if faults else "no fault"
    more = "" if faults else "give more runs; "
    text = f"{said} would have been detected with probability {WANTED_POWER} at these runs; "
    return f"{text[0].upper()}{text[1:]}{more}{_NO_VERDICT}"


def _normal_quantile(error: float) -> float:
    from scipy.special import ndtri

    return -float(ndtri(error))


def _least_share(found: Callable[[float], bool]) -> float | None:
    """The least per cent, as a share, by which noise may be smaller and be found."""
    low, high = 0, round(100 * GRAVEST_NOISE)
    if not found(high / 100):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if found(middle / 100) else (middle, high)
    return high / 100


def _ratio(epsilon: float) -> str:
    """e^ε with three digits, rounded up."""
    ratio = math.exp(min(epsilon, 700.0))
    digits = 2 - math.floor(math.log10(ratio))
    up = math.ceil(round(ratio * 10.0**digits, 9)) / 10.0**digits
    return f"{up:.3g}"


def _curve_detects(points: Any, scores: Both, runs: int, error: float) -> bool:
    """Tell whether a bet, chosen on half of the scores, would probably have grown to 1/error."""
    edges = quantile_edges(np.concatenate(scores))
    if edges.size == 0 or min(side.size for side in scores) < 2:
        return False
    bets = tail_bets(points, edges.size + 1)
    logs = bets.log_factors.reshape(len(bets.log_prior), -1)

    def wealth(part: slice) -> Floats:
        """Of each bet, what it reaches with probability 0.9."""
        halves = [side[part] for side in scores]
        p, q = (
            np.bincount(np.searchsorted(edges, side, side="right"), minlength=edges.size + 1)
            / side.size
            for side in halves
        )
        cells = np.outer(p, q).ravel()
        growth = logs @ cells
        spread = np.sqrt(np.maximum(np.square(logs) @ cells - growth**2, 0.0))
        known = math.sqrt(runs + runs * runs / min(side.size for side in halves))
        reached: Floats = bets.log_prior + runs * growth - _QUANTILE * known * spread
        return reached

    chosen = int(wealth(slice(0, None, 2)).argmax())
    return bool(wealth(slice(1, None, 2))[chosen] >= -math.log(error))
