"""What an audit can conclude from samples: events and their counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Count, Natural, Record
from dpaudit.base.validate import open_fraction, real_array
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
