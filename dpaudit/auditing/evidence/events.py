"""Events: what an audit can conclude from samples, and which event it tests.

A threshold that is picked on the data it is tested on makes an auditor refute correct mechanisms.
Here a pilot picks event and direction, fresh runs test them, and no multiplicity is left to pay.

Rare events promise the largest epsilons, and their pilot frequencies are the noisiest. The
two-sample exponential tilt model (Qin 1998) borrows strength from the bulk: the log odds of "this
score came from x" are a line or a parabola in the score clipped at two quantiles. That is exact for
Gaussian (no clipping) and Laplace noise (clipped at the two true answers); the clipping level
is chosen by penalised likelihood. A wrong model only costs power: evidence never rests on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Count, Natural, Record
from dpaudit.base.validate import integer_at_least, open_fraction, probability, real_array
from dpaudit.mechanisms.pairs import Floats

Flags = NDArray[np.bool_]
Integers = NDArray[np.int64]
Both = tuple[Floats, Floats]
"""Outputs, or their scores, on x and on x'."""

_LEAST = math.ulp(0.0)


class Direction(StrEnum):
    """The neighbour that is put on the large side of ``p <= exp(epsilon) q + delta``."""

    FORWARD = "x to x'"
    BACKWARD = "x' to x"

    @property
    def sides(self) -> list[str]:
        """The neighbour under which an event is the likelier one, and the other."""
        return self.value.split(" to ")


_OUTSIDE = {"≥": "<", ">": "≤", "≤": ">", "<": "≥"}
_SWAPPED = {"≥": "≤", ">": "<"}


def _end(value: float, outside: float, closed: str, opened: str) -> tuple[str, str]:
    """Sign and number of an end; that of the next float ``outside``, not included, if simpler."""
    beyond = math.nextafter(value, outside) + 0.0
    if not _simple(value) and _simple(beyond):
        return opened, f"{beyond:.6g}"
    return closed, f"{value:.6g}"


def _simple(value: float) -> bool:
    """Tell whether the six digits that are shown are the whole number."""
    return math.isfinite(value) and abs(value) != _LEAST and float(f"{value:.6g}") == value


def json_number(value: float) -> float | str:
    """A number as strict JSON has it: infinities become the texts ``"inf"`` and ``"-inf"``."""
    return value if math.isfinite(value) else str(value)


def confidence_failure(confidence: float) -> float:
    """The error rate ``1 - confidence`` of a confidence in (0, 1).

    Raises:
        InputError: if ``confidence`` is not in (0, 1).
    """
    return 1.0 - open_fraction(confidence=confidence)


def as_scores(**field: ArrayLike) -> Floats:
    """A one-dimensional array of scores; infinities are welcome, NaN is not.

    Raises:
        InputError: if the scores are not numbers, not one-dimensional, or contain NaN.
    """
    ((name, value),) = field.items()
    array = np.asarray(value)
    if array.dtype.kind not in "biuf" or array.ndim != 1:
        raise InputError(
            f"{name} has type {array.dtype} and shape {array.shape}; "
            "it must be a one-dimensional array of numbers."
        )
    scores = array.astype(np.float64)
    if np.isnan(scores).any():
        raise InputError(f"{name} contains NaN; every run must be given a score (or an infinity).")
    return scores


def deltas_of(curve: Callable[[Floats], ArrayLike], epsilons: Floats) -> Floats:
    """The values of a claimed curve, checked, and capped at 1, where the claim is void.

    Raises:
        InputError: if one of them is negative or not finite, or there are not as many.
    """
    values: Floats = real_array(curve=np.asarray(curve(epsilons)))
    if values.shape != epsilons.shape or (values < 0).any():
        raise InputError(
            f"curve has shape {values.shape} and minimum {values.min(initial=0.0)}; "
            f"it must give one delta of at least 0 for each of {epsilons.size} epsilons."
        )
    return np.minimum(values, 1.0)


@dataclass(frozen=True)
class Event(Checked):
    r"""A set of scores, and the direction in which it is to be tested.

    The set is the closed interval ``[lower, upper]``, or its complement. A threshold event leaves
    one end infinite; an atom has ``lower == upper``; a two-sided event is a complement.

    Example:
        >>> event = Event(lower=1.37)
        >>> event.describe()
        "score ≥ 1.37 (x to x')"
        >>> event.indicator([0.0, 1.37, 2.0]).tolist()
        [False, True, True]

    Attributes:
        lower: the lower end, ``-inf`` for none.
        upper: the upper end, ``inf`` for none.
        complement: whether the event is everything outside the interval.
        direction: FORWARD if the event is expected to be more likely under x than under x'.

    Raises:
        InputError: if an end is NaN or ``lower > upper``.
    """

    lower: float = -math.inf
    upper: float = math.inf
    complement: bool = False
    direction: Direction = Direction.FORWARD

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.lower <= self.upper:
            raise InputError(
                f"lower is {self.lower} and upper is {self.upper}; lower must not exceed upper."
            )

    def indicator(self, scores: ArrayLike) -> NDArray[np.bool_]:
        """Tell whether each score of a one-dimensional array lies in the event."""
        values = as_scores(scores=scores)
        inside: NDArray[np.bool_] = (values >= self.lower) & (values <= self.upper)
        return ~inside if self.complement else inside

    def count(self, scores_x: ArrayLike, scores_x_prime: ArrayLike) -> PairCounts:
        """The counts of the event, with the side that :attr:`direction` names first."""
        first, second = scores_x, scores_x_prime
        if self.direction is Direction.BACKWARD:
            first, second = second, first
        hits, other = self.indicator(first), self.indicator(second)
        return PairCounts(int(hits.sum()), hits.size, int(other.sum()), other.size)

    def describe(self) -> str:
        """The event as a reader would write it, with its direction."""
        below, low = _end(self.lower, -math.inf, "≥", ">")
        above, high = _end(self.upper, math.inf, "≤", "<")
        bounded_below, bounded_above = self.lower > -math.inf, self.upper < math.inf
        if self.lower == self.upper:
            words = f"score {'≠' if self.complement else '='} {self.lower:.6g}"
        elif bounded_below and bounded_above:
            words = (
                f"score {_OUTSIDE[below]} {low} or score {_OUTSIDE[above]} {high}"
                if self.complement
                else f"{low} {_SWAPPED[below]} score {above} {high}"
            )
        elif bounded_below:
            words = f"score {_OUTSIDE[below] if self.complement else below} {low}"
        elif bounded_above:
            words = f"score {_OUTSIDE[above] if self.complement else above} {high}"
        else:
            words = "no score" if self.complement else "any score"
        return f"{words} ({self.direction.value})"

    def to_dict(self) -> dict[str, Any]:
        """The event as strict JSON values."""
        return {
            "lower": json_number(self.lower),
            "upper": json_number(self.upper),
            "complement": self.complement,
            "direction": self.direction.value,
        }


@dataclass(frozen=True)
class PairCounts(Record):
    """Counts of an event in independent runs on two neighbours.

    Attributes:
        hits: occurrences ``a`` on the side that is expected to be more likely.
        runs: runs ``n`` on that side.
        other_hits: occurrences ``b`` on the other side.
        other_runs: runs ``m`` on the other side.

    Raises:
        InputError: if a count is not an integer in ``0 .. runs``, or there are no runs.
    """

    hits: Natural
    runs: Count
    other_hits: Natural
    other_runs: Count

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, hits, runs in (
            ("hits", self.hits, self.runs),
            ("other_hits", self.other_hits, self.other_runs),
        ):
            if hits > runs:
                raise InputError(f"{name} is {hits}; it must be at most the {runs} runs.")

    @property
    def shrunk(self) -> tuple[float, float]:
        """The event's shares of the runs of either side, shrunk by half an occurrence."""
        return (
            (self.hits + 0.5) / (self.runs + 1.0),
            (self.other_hits + 0.5) / (self.other_runs + 1.0),
        )


_CLIPS = (0.0, 0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)
# Log likelihood that a parabola, and any clipping, must gain; more than Akaike's 1, as the models
# without them extrapolate best to the tails, where the largest epsilons are.
_DEGREE_PENALTY, _CLIP_PENALTY = 2.0, 3.0


def _fits(features: Floats, hits: Floats, totals: Floats) -> tuple[Floats, Floats]:
    """Of models (models, cells, terms): log likelihoods and fitted chances, with a slight ridge."""
    weights, across = np.zeros(features.shape[::2]), features.swapaxes(1, 2)

    def logits() -> Floats:
        return np.clip((features @ weights[..., None])[..., 0], -30, 30)

    for _ in range(12):
        chance = 1.0 / (1.0 + np.exp(-logits()))
        slope = across @ (hits - totals * chance)[..., None] - 1e-3 * weights[..., None]
        curvature = (across * (totals * chance * (1 - chance))[:, None]) @ features
        curvature += 1e-3 * np.eye(features.shape[2])
        weights = np.clip(weights + np.linalg.solve(curvature, slope)[..., 0], -30, 30)
    odds = logits()
    likelihoods = (hits * odds - totals * np.logaddexp(0.0, odds)).sum(axis=1)
    return likelihoods, 1.0 / (1.0 + np.exp(-odds))


def smooth_rates(values: Floats, first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Smoothed probabilities of cells of scores under x and under x'.

    Args:
        values: a score that stands for each cell, increasing, shape ``(c,)``.
        first: scores on x per cell, shape ``(c,)``.
        second: scores on x' per cell, shape ``(c,)``.

    Returns:
        Two arrays of shape ``(c,)``, each summing to about 1.
    """
    totals = first + second
    ranks = (np.cumsum(totals) - totals / 2) / totals.sum()
    inside = values[np.isfinite(values)]
    if inside.size == 0:
        return first / first.sum(), second / second.sum()
    finite = np.clip(values, inside[0], inside[-1])
    lines, penalties = list[Floats](), list[float]()
    for clip in _CLIPS:
        kept = finite[(ranks >= clip) & (ranks <= 1 - clip)]
        if kept.size < 2 or (half_width := kept[-1] / 4 - kept[0] / 4) == 0:
            continue
        # Halved first, as the sum of two large scores could overflow.
        line = np.clip(finite, kept[0], kept[-1]) / 2 - (kept[0] / 4 + kept[-1] / 4)
        lines.append(line / half_width)
        penalties.append(_CLIP_PENALTY if clip else 0.0)
    chance = np.full(values.size, first.sum() / totals.sum())
    if lines:
        bases = np.stack(lines)[..., None]
        fits = [_fits(bases ** np.arange(terms), first, totals) for terms in (2, 3)]
        gains = np.stack([fits[0][0], fits[1][0] - _DEGREE_PENALTY]) - penalties
        best = int(gains.T.argmax())
        chance = fits[best % 2][1][best // 2]
    return totals * chance / first.sum(), totals * (1 - chance) / second.sum()


_THRESHOLDS = 200  # cuts for one-sided events
_ATOMS, _REPEATS = 500, 3  # most atoms, and fewest occurrences, of rare events
_COARSE = 16  # cuts for intervals and two-sided events, which are quadratic in number
# Standard errors deducted from raw pilot frequencies, of which there are hundreds to be lucky;
# from smoothed ones; and (added) from raw ones that only have to agree with smoothed ones.
_RAW, _SMOOTH, _AGREE = 3.5, 0.0, -1.0
_RARE = 1.5  # from raw ones, where a rare event is wanted


@dataclass(frozen=True, eq=False)
class _Pilot:
    """Pilot counts of the cells ``cuts[i] <= score < cuts[i + 1]``, and the events made of them.

    Event i consists of the cells ``start[i] .. stop[i] - 1``, or of all others (``outside``).
    """

    cuts: Floats
    first: Floats
    second: Floats
    start: Integers
    stop: Integers
    outside: Flags

    @classmethod
    def of(cls, first: Floats, second: Floats, *, rare: bool = False) -> _Pilot:
        pooled = np.sort(np.concatenate([first, second]))
        values, counts = np.unique(pooled, return_counts=True)
        atoms = values[counts >= max(2.0, 0.002 * pooled.size)]
        if rare:
            order = np.argsort(-counts, kind="stable")[:_ATOMS]
            atoms = np.sort(values[order[counts[order] >= _REPEATS]])
        tails = _cuts(pooled, _THRESHOLDS)
        finite = np.isfinite(values)
        with np.errstate(over="ignore"):  # beyond the largest float is infinity
            after = np.nextafter(atoms[np.isfinite(atoms)], np.inf)
        # The least finite score is a cut, so that -inf has a cell of its own.
        cuts = np.unique(np.concatenate([tails, atoms, after, values[finite][:1]]))
        every, single = np.arange(cuts.size), np.searchsorted(cuts, atoms)
        ends = np.append(np.searchsorted(cuts, _cuts(pooled, _COARSE)), cuts.size)
        pairs = np.array(list(combinations(np.unique(ends), 2)))
        start = np.concatenate([every, every, single, pairs[:, 0], pairs[:, 0]])
        to_end = np.full(cuts.size, cuts.size)
        stop = np.concatenate([to_end, to_end, single + 1, pairs[:, 1], pairs[:, 1]])
        lengths = [cuts.size, cuts.size, single.size, len(pairs), len(pairs)]
        outside = np.repeat([False, True, False, False, True], lengths)
        return cls(cuts, _cells(cuts, first), _cells(cuts, second), start, stop, outside)

    def rates(self, cells: Floats, runs: float) -> Floats:
        """The events' shares of ``runs``, shrunk by half an occurrence either way."""
        sums = np.concatenate([[0.0], np.cumsum(cells)])
        inside = sums[self.stop] - sums[self.start]
        held = np.where(self.outside, sums[-1] - inside, inside)
        shares: Floats = (np.clip(held, 0.0, runs) + 0.5) / (runs + 1.0)
        return shares

    def event(self, index: int, direction: Direction) -> Event:
        stop = self.stop[index]
        upper = np.inf if stop == self.cuts.size else np.nextafter(self.cuts[stop], -np.inf)
        lower = float(self.cuts[self.start[index]])
        return Event(lower, float(upper), bool(self.outside[index]), direction)


def _cells(cuts: Floats, scores: Floats) -> Floats:
    places = np.searchsorted(cuts, scores, side="right") - 1
    return np.bincount(places, minlength=cuts.size).astype(np.float64)


def _cuts(pooled: Floats, number: int) -> Floats:
    """Distinct sorted scores, the least included, about evenly spaced in logits of their rank."""
    logits = np.linspace(-1.0, 1.0, number) * math.log(pooled.size)
    places = np.rint((pooled.size - 1) / (1.0 + np.exp(-logits))).astype(int)
    return np.unique(pooled[np.append(0, places)])


def expected_lower_bound(p: ArrayLike, q: ArrayLike, delta: float, margin: float) -> Floats:
    """Normal approximation of the certified epsilon of events with probabilities p and q.

    The epsilon at which ``p - exp(epsilon) q - delta`` equals ``margin`` times the standard
    deviation of one pair's ``1_S(x) - exp(epsilon) 1_S(x')``. Used to rank candidates and to plan
    runs, never as evidence.

    Args:
        p: probabilities on the large side.
        q: probabilities on the small side, same shape, positive.
        delta: in [0, 1).
        margin: standard errors of margin, divided by the root of the number of pairs.

    Returns:
        The epsilons; ``-inf`` where nothing can be certified.
    """
    large, small = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    excess = large - delta
    # (excess - k q)^2 = margin^2 (p (1 - p) + k^2 q (1 - q)): the smaller root k.
    square = small * small - margin * margin * small * (1 - small)
    middle = excess * small
    constant = excess * excess - margin * margin * large * (1 - large)
    root = np.sqrt(np.maximum(middle * middle - square * constant, 0.0))
    possible = (excess > 0) & (constant > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        epsilon: Floats = np.where(possible, np.log(constant / (middle + root)), -np.inf)
    return epsilon


def choose_event(
    pilot_scores_x: ArrayLike,
    pilot_scores_x_prime: ArrayLike,
    delta: float,
    *,
    test_runs: int,
    confidence: float = 0.95,
    rare: bool = False,
) -> Event:
    """The event and direction with the largest lower bound to be expected on fresh runs.

    Candidates are both tails at some 200 thresholds, atoms, intervals and two-sided events, each
    in both directions. They are ranked by the bound that ``test_runs`` would give, from the pilot's
    frequencies less several standard errors (so that a lucky rare event does not win) or from
    frequencies that :func:`smooth_rates` smoothed, where the raw ones agree.

    Args:
        pilot_scores_x: scores of pilot runs on x, shape ``(n,)``. The pilot is spent.
        pilot_scores_x_prime: scores of pilot runs on x', shape ``(m,)``.
        delta: the delta at which epsilon will be bounded.
        test_runs: fresh runs a side that will follow.
        confidence: the confidence of the test that will follow.
        rare: choose with less caution, and atoms from few repeats on: a leak in one run of a
            thousand is found by nothing else, and the luck of common events loses little.

    Raises:
        InputError: if there are no scores, a score is NaN, or a number is out of range.
    """
    first = np.sort(as_scores(pilot_scores_x=pilot_scores_x))
    second = np.sort(as_scores(pilot_scores_x_prime=pilot_scores_x_prime))
    probability(delta=delta)
    integer_at_least(1, test_runs=test_runs)
    if min(first.size, second.size) == 0:
        raise InputError("the pilot has 0 runs on one side; it needs at least 1 on each.")
    from scipy.special import ndtri

    quantile = -float(ndtri(confidence_failure(confidence)))
    pilot = _Pilot.of(first, second, rare=rare)
    raw = pilot.rates(pilot.first, first.size), pilot.rates(pilot.second, second.size)
    smooth_cells = smooth_rates(pilot.cuts, pilot.first, pilot.second)
    smooth = tuple(
        pilot.rates(cells * size, size)
        for cells, size in zip(smooth_cells, (first.size, second.size), strict=True)
    )
    test_error = quantile / math.sqrt(test_runs)
    pilot_error = math.sqrt(2.0 / (first.size + second.size))
    best, chosen = -math.inf, Event()
    for direction, order in ((Direction.FORWARD, (0, 1)), (Direction.BACKWARD, (1, 0))):

        def promise(rates: tuple[Floats, ...], caution: float, order: tuple[int, int]) -> Floats:
            margin = max(0.0, test_error + caution * pilot_error)
            return expected_lower_bound(rates[order[0]], rates[order[1]], delta, margin)

        agreed = np.minimum(promise(smooth, _SMOOTH, order), promise(raw, _AGREE, order))
        bold = promise(raw, _RARE, order)
        promises = bold if rare else np.maximum(promise(raw, _RAW, order), agreed)
        index = int(promises.argmax())
        if promises[index] > best:
            best, chosen = float(promises[index]), pilot.event(index, direction)
    return chosen
