"""What an audit can find: runs that are needed at all, and what silence is worth.

Forecasts, not evidence: they are computed from the rates that a pilot showed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.distinguishing.nulls import CurveNull, Null, PointNull
from dpaudit.auditing.distinguishing.scores import Score, WhiteBox
from dpaudit.auditing.evidence.bets import quantile_edges, tail_bets
from dpaudit.auditing.evidence.eprocess import curve_points
from dpaudit.auditing.evidence.events import expected_lower_bound
from dpaudit.auditing.evidence.power import fewest_runs, power
from dpaudit.auditing.evidence.types import Direction, Event, PairCounts
from dpaudit.certificate import Claim
from dpaudit.errors import InputError

__all__ = ["Forecast", "power_statement", "require_enough_runs"]

Floats = NDArray[np.float64]
Both = tuple[Floats, Floats]
Curve = Callable[[Any], Any]
Family = Callable[[float], tuple[float, float]]

WANTED_POWER = 0.9
GRAVEST_NOISE = 0.95
CAUTION = 4.0  # standard errors, so that a lucky rare tail is not chosen
MANY = 5  # expected hits from which the normal law serves for a forecast
_QUANTILE = 1.2815515655446004  # of the standard normal at WANTED_POWER
_SAMPLE = 20_000
_MOST_RUNS = 10**7
_STEPS = 64
_NEVER = 2**63  # e^30 runs and more


def require_enough_runs(
    claim: Claim,
    runs: int,
    test_runs: Callable[[int], int],
    error: float,
    curve: CurveNull | None,
) -> None:
    """Refuse an audit that could not refute the claim whatever it saw.

    Args:
        claim: under test.
        runs: runs a side, all stages.
        test_runs: how many of so many runs (at least 2) the joint test sees.
        error: of the joint test, 0 where it decides nothing.
        curve: an unused test of the claimed curve, if there is one; it is used up.

    Raises:
        InputError: saying how many runs are needed.
    """
    possible = error > 0 and claim.epsilon <= 30
    fewest = fewest_runs(claim.epsilon, claim.delta, error) if possible else _NEVER
    needed = _runs_in_all(fewest, test_runs) if fewest < _NEVER else _NEVER
    if runs >= needed:
        return
    if curve is not None:
        while not curve.refuted and curve.pairs < _MOST_RUNS and curve.pairs < needed:
            more = max(64, curve.pairs // 4)
            curve.update(np.ones(more), np.zeros(more))
        needed = min(needed, curve.pairs) if curve.refuted else needed
    if runs < needed:
        remedy = (
            f"at least {needed} are needed; give more, or a smaller epsilon to test"
            if needed < _NEVER
            else "no number of runs could; give a smaller epsilon to test"
        )
        raise InputError(
            f"runs is {runs}; even outputs that never coincide could not refute {claim} with so "
            f"few: {remedy}."
        )


def _runs_in_all(fewest: int, test_runs: Callable[[int], int]) -> int:
    """The least number of runs from which on at least ``fewest`` are always left for the test."""
    low, high = 1, max(2, fewest)
    while test_runs(high) < fewest:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if test_runs(middle) >= fewest else (middle, high)
    # A pilot that grows in steps takes a few test runs back, so the last shortage counts.
    nearby = range(high + _STEPS, max(2, high) - 1, -1)
    short = (runs for runs in nearby if test_runs(runs) < fewest)
    return next(short, high - 1) + 1


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
        centres: tuple[Any, Any] = np.median(outputs[0], axis=0), np.median(outputs[1], axis=0)
        if isinstance(score, WhiteBox):
            rng, mechanism = np.random.default_rng(0), score.mechanism
            x, x_prime = (
                mechanism.release_many(value, _SAMPLE, rng).astype(np.float64)
                for value in (score.x, score.x_prime)
            )
            outputs = x, x_prime
            centres = mechanism._prepare(score.x), mechanism._prepare(score.x_prime)
        continuous = all(_continuous(side) for side in outputs)
        return cls(outputs, centres) if continuous else None

    def scores(self, score: Score, factor: float) -> Both:
        """Scores of the outputs with their noise multiplied by a factor."""
        first, second = (
            score(centre + factor * (side - centre))
            for side, centre in zip(self.outputs, self.centres, strict=True)
        )
        return first, second


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


def _continuous(outputs: Floats) -> bool:
    """Whether there are several outputs, and most differ from each other."""
    if len(outputs) < 2:
        return False
    return len(np.unique(outputs.reshape(len(outputs), -1), axis=0)) > 0.9 * len(outputs)


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
