"""The record of an audit, with a forecast of the least fault that it would have found.

Forecasts say what silence is worth. They are computed from the rates that a pilot showed, also for
outputs whose noise is made smaller, and are no evidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Set
from contextlib import suppress
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np

from dpaudit.auditing.distinguishing.design import CurveNull, Design, Null, PointNull, RatesNull
from dpaudit.auditing.distinguishing.event_description import Fields, rates_in_words
from dpaudit.auditing.distinguishing.experiment import Experiment
from dpaudit.auditing.distinguishing.preflight import Preflight
from dpaudit.auditing.distinguishing.scores import (
    CodeScore,
    Identity,
    Score,
    WhiteBox,
    score_outputs,
)
from dpaudit.auditing.evidence.eprocess import curve_points, quantile_edges, tail_bets
from dpaudit.auditing.evidence.events import Both, Event, choose_event, expected_lower_bound
from dpaudit.auditing.evidence.two_counts import power, single_ratio
from dpaudit.base.errors import InputError
from dpaudit.certificate import AuditRecord, Claim
from dpaudit.mechanisms.pairs import Floats
from dpaudit.project.subject import AuditPair

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


Family = Callable[[float], tuple[float, float]]

WANTED_POWER = 0.9
GRAVEST_NOISE = 0.95
PILOTS = 12
RARE = 0.05
"""Share of outputs with rare facts above which they are no exception, such as free text."""
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

    @property
    def _error(self) -> float:
        """Of the event that has most of the error rate."""
        share = self.point.share if isinstance(self.point, PointNull) else 1.0
        return share * self.design.point_error

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
        delta, runs, error = self.design.claim.delta, self.runs, self._error
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
        claim, error = self.design.claim, self._error
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


@dataclass(frozen=True)
class Outcome:
    """The results of all runs.

    Attributes:
        score: that told the neighbours apart.
        point: the test of (ε, δ).
        curve: the test of the whole curve, if there was one.
        runs: on each side, all stages.
        pilot: of these, the pilot.
        pilot_outputs: those of the pilot that the score was not trained on, if there was one.
        encoded: whether they are rows that encode outputs of any kind.
        fields: all outputs of the pilot, and what their entries are called, if there was one.
    """

    score: Score
    point: Null
    curve: CurveNull | RatesNull | None
    runs: int
    pilot: int
    pilot_outputs: Both | None = None
    encoded: bool = False
    fields: Fields | None = None

    def record(
        self, design: Design, experiment: Experiment, shown: Preflight, method: str | None
    ) -> AuditRecord:
        """The audit as a record."""
        claim, pair = design.claim, experiment.pair
        by_point = design.point_refutes(self.point)
        by_curve = self.curve is not None and self.curve.refuted
        refuted = by_point or by_curve
        lower = self.point.lower_bound(design.confidence)
        if not refuted:
            lower = min(lower, claim.epsilon)
        rejected = [word for word, yes in (("point", by_point), ("curve", by_curve)) if yes]
        name = self.score.name
        if rejected == ["curve"] and self.curve is not None:
            event = self.curve.in_words(name)
        else:
            event = self.point.event_in_words(name, self._told)
        details: dict[str, Any] = {
            "score": self.score.method,
            "pilot_runs": self.pilot,
            "deterministic": shown.deterministic,
            "error_rates": {"point": design.point_error},
            "rejected_by": rejected,
            **self.point.details(),
            **facts_of_sides(pair, getattr(self.score, "mechanism", experiment.release)),
        }
        if experiment.own_randomness:
            details["own_randomness"] = (
                "the code draws its own randomness; this audit cannot be replayed"
            )
        if self.fields is not None and self.fields.constant and not refuted:
            details["untested"] = True
        if self.curve is not None:
            details["error_rates"]["curve"] = design.curve_error
            details["curve"] = self.curve.details()
        if not_learned := design.not_learned(shown.shape):
            details["not_learned"] = not_learned
        tested = self._tested(claim)
        if refuted and tested:
            details["tested"] = tested
        if self.fields is not None:
            details |= self._facts_of_fields(self.fields)
        return AuditRecord(
            refuted=refuted,
            method=method or self.score.method,
            claim_epsilon=claim.epsilon,
            delta=claim.delta,
            epsilon_lower=lower,
            confidence=design.confidence,
            runs=self.runs,
            event=event,
            seed=experiment.seed,
            pair={"x": as_json(pair.x), "x_prime": as_json(pair.x_prime)},
            power="" if refuted else f"{tested} {self._power(design)}{self._untested()}".lstrip(),
            details=details,
        )

    def _told(self, event: Event) -> str | None:
        """Return what an event of the score says, if more can be said than its numbers."""
        own = getattr(self.score, "in_words", None)
        told: str | None = None if own is None else own(event)
        if told is None and self.fields is not None:
            return self.fields.in_words(self.score, event)
        return told

    def _tested(self, claim: Claim) -> str:
        """How often the event of the largest bound happened."""
        if not isinstance(self.point, PointNull) or self.point.is_certain:
            return ""
        arm, told = self.point.decisive, self.point.event_in_words(self.score.name, self._told)
        return rates_in_words(arm.counts, arm.event, claim, told)

    def _untested(self) -> str:
        """How many outputs showed what hardly any of the pilot did, if these are few."""
        arm = self.point.untested if isinstance(self.point, PointNull) else None
        if arm is None or arm.counts is None:
            return ""
        shown, every = arm.counts.hits + arm.counts.other_hits, arm.counts.runs * 2
        if not 0 < shown <= RARE * every:
            return ""
        return (
            f" {shown} of {every} outputs had a field, a text, a type or the like that hardly any "
            "output of the pilot had. No event tested this; with more runs, one would."
        )

    def _facts_of_fields(self, fields: Fields) -> dict[str, Any]:
        """Outputs that show the event, and fields that differ in nearly every run."""
        found: dict[str, Any] = {}
        # A score that runs code is of a run on real data: each output is a release of these.
        point, secret = self.point, isinstance(self.score, CodeScore)
        if isinstance(point, PointNull) and not (
            secret or point.is_certain or point.decisive.score
        ):
            found["examples"] = fields.examples(self.score, point.decisive.event)
        found["unique_fields"] = dict.fromkeys(fields.unique, "undeclared")
        return {name: fact for name, fact in found.items() if fact}

    def _power(self, design: Design) -> str:
        # Where the score is the output itself, the test runs are a larger sample than the pilot;
        # a declared mechanism draws a sample of its own. Other scores without a pilot have none.
        sampled = isinstance(self.score, Identity | WhiteBox)
        outputs = self.point.scores if sampled else self.pilot_outputs
        if self.encoded or isinstance(self.score, CodeScore):  # no noise is known to scale
            outputs = None
        forecast = Forecast(
            self.score,
            None if outputs is None else Sample.of(self.score, outputs),
            self.point,
            design,
            self.pilot if self.pilot_outputs is None else len(self.pilot_outputs[0]),
        )
        return power_statement(forecast)


def facts_of_sides(pair: AuditPair, release: Any = None) -> dict[str, bool]:
    """Say in details that the sides of a pair are equal, as data or as the noise meets them."""
    sides = pair.x, pair.x_prime
    prepare = getattr(release, "prepare", None)
    with suppress(InputError, TypeError, ValueError):
        if prepare is not None:
            sides = prepare(sides[0]), prepare(sides[1])
    return {"equals": True} if _alike(*sides) else {}


def _alike(one: Any, other: Any) -> bool:
    """Tell whether two plain values are equal, whatever their types; nothing else is asked."""
    one, other = (
        each.tolist() if isinstance(each, np.ndarray | np.generic) else each
        for each in (one, other)
    )
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    plain = all(isinstance(each, Number | str | bytes | Set) for each in (one, other))
    return plain and bool(one == other)


def as_json(value: Any) -> Any:
    """Data as JSON values: arrays as lists, anything foreign by its representation."""
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist())
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else repr(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    return repr(value)[:200]
