"""Scores: one number for each output, large where ``x`` is the likelier data set.

A score is frozen before the runs that it is tested on, deterministic and picklable. The better it
orders outputs by their likelihood ratio, the fewer runs an audit needs (Neyman and Pearson 1933);
validity never depends on it.

Which of many columns differ between two samples: for a choice, never as evidence.

Entries that tell only together: by covariances, by a product, by the parity of signs.

Values that only one neighbour can show: a raw record, a file's name as a number, a constant.

A leak in one run of thousands moves no other score, and may be all that there is to find.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.evidence.types import Direction, Event
from dpaudit.base.errors import InputError
from dpaudit.mechanisms import Mechanism
from dpaudit.mechanisms.pairs import Floats
from dpaudit.project import AuditPair


@runtime_checkable
class Score(Protocol):
    """A function of outputs to numbers, on which neighbours are told apart by a threshold."""

    @property
    def name(self) -> str:
        """What an event of this score speaks of, such as ``output``."""

    @property
    def method(self) -> str:
        """How the evidence is made, for the record."""

    def __call__(self, outputs: Floats) -> Floats:
        """One number for each output: shape (n, …) to shape (n,); NaN counts as 0."""


def is_scalar(outputs: Floats) -> bool:
    """Tell whether every output, shape (n, …), is one number."""
    return outputs[:1].size == 1


def score_outputs(score: Score, outputs: Floats) -> Floats:
    """The scores of outputs; NaN, which tells nothing, counts as 0 on both sides.

    Raises:
        InputError: if they are not one number for each output.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scores = np.asarray(score(outputs), dtype=np.float64)
    if scores.shape != (len(outputs),):
        raise InputError(
            f"{score.method} gave scores of shape {scores.shape}; it must give one number for "
            f"each of {len(outputs)} outputs."
        )
    return np.where(np.isnan(scores), 0.0, scores)


@dataclass(frozen=True)
class Identity:
    """The output itself, for outputs of one number."""

    name: str = "output"
    method: str = "black-box, output threshold"

    def __call__(self, outputs: Floats) -> Floats:
        """The outputs, shape (n,) or (n, 1, …)."""
        return outputs.reshape(len(outputs))


@dataclass(frozen=True)
class WhiteBox:
    """Log-likelihood ratio of the declared mechanism: the best score, if that is what runs.

    Attributes:
        mechanism: as declared.
        x: the private value of one neighbour.
        x_prime: that of the other.
    """

    mechanism: Mechanism
    x: Any
    x_prime: Any
    name: str = "log-likelihood ratio"
    method: str = "white-box likelihood ratio"

    @classmethod
    def of(cls, mechanism: Mechanism, pair: AuditPair) -> WhiteBox | None:
        """The score of a pair, or None if the mechanism has no density or takes no such data."""
        try:
            for data in (pair.x, pair.x_prime):
                mechanism.log_density(np.zeros((1, *np.shape(data))), data)
        except (InputError, ValueError, TypeError):
            return None
        return cls(mechanism, pair.x, pair.x_prime)

    def __call__(self, outputs: Floats) -> Floats:
        """Log p(output | x) − log p(output | x'), summed over entries; 0 where neither can give it.

        Rounded to single precision: the last bits of a double follow from the last bits of the
        output, which tell neighbours apart for reasons that have nothing to do with the claim on
        real numbers.
        """
        over, under = (self.mechanism.log_density(outputs, data) for data in (self.x, self.x_prime))
        impossible = np.isneginf(over) & np.isneginf(under)
        with np.errstate(invalid="ignore"):
            ratio: Floats = np.where(impossible, 0.0, over - under)
        return ratio.astype(np.float32).astype(np.float64)


@dataclass(frozen=True)
class LinearScore:
    """A fixed weighted sum of the entries of an output.

    Attributes:
        weights: one for each entry, in the order of the flattened output.
    """

    weights: tuple[float, ...]
    name: str = "weighted sum of the releases"
    method: str = "white-box linear score"

    def __call__(self, outputs: Floats) -> Floats:
        """The weighted sums, shape (n,)."""
        flat = outputs.reshape(len(outputs), -1)
        if flat.shape[1] != len(self.weights):
            raise InputError(
                f"outputs have {flat.shape[1]} entries; the score has {len(self.weights)} weights."
            )
        sums: Floats = flat @ np.array(self.weights)
        return sums


@dataclass(frozen=True)
class FixedScore:
    """A function that was written down before any run, as a score.

    Attributes:
        function: outputs, shape (n, …), to scores, shape (n,).
        name: what a score is.
        method: how the evidence is made.
    """

    function: Callable[[Floats], Floats]
    name: str = "fixed score"
    method: str = "white-box fixed score"

    def __call__(self, outputs: Floats) -> Floats:
        """Return what the function gives, shape (n,)."""
        return np.asarray(self.function(outputs), dtype=np.float64)


@dataclass(frozen=True)
class AtomScore:
    """Empirical log ratio of each of a few possible outputs, learned on the pilot.

    Attributes:
        atoms: the outputs seen, flattened, in lexical order.
        ratios: the log ratio of each.
    """

    atoms: tuple[tuple[float, ...], ...]
    ratios: tuple[float, ...]
    name: str = "learned log ratio of the output"
    method: str = "black-box, learned log ratio of discrete outputs"

    @classmethod
    def fit(cls, x: Floats, x_prime: Floats) -> AtomScore:
        """Count the outputs of a pilot, half an occurrence added to each."""
        flat = np.concatenate([x.reshape(len(x), -1), x_prime.reshape(len(x_prime), -1)])
        atoms, inverse = np.unique(flat + 0.0, axis=0, return_inverse=True)
        inverse = inverse.ravel()
        seen = [np.bincount(part, minlength=len(atoms)) for part in np.split(inverse, [len(x)])]
        rates = [(count + 0.5) / (count.sum() + 0.5 * len(atoms)) for count in seen]
        ratios = np.log(rates[0] / rates[1])
        return cls(tuple(map(tuple, atoms.tolist())), tuple(ratios.tolist()))

    def __call__(self, outputs: Floats) -> Floats:
        """The log ratio of each output; 0 for one that the pilot did not show."""
        table = dict(zip(self.atoms, self.ratios, strict=True))
        flat = outputs.reshape(len(outputs), -1) + 0.0
        rows, inverse = np.unique(flat, axis=0, return_inverse=True)
        values = np.array([table.get(tuple(row), 0.0) for row in rows.tolist()])
        scores: Floats = values[inverse.ravel()]
        return scores


SLAB = 2_000_000
"""Numbers that are looked at together."""
FAR = 4.0
"""Widths from the centre beyond which an entry says nothing more than "far"."""


def scale(columns: Floats) -> tuple[Floats, Floats]:
    """Median and robust width (positive) of columns, shape (n, d), in which NaN is missing."""
    ordered = np.sort(columns, axis=0)  # NaN comes last
    last = np.maximum(len(columns) - np.isnan(columns).sum(axis=0) - 1, 0)
    places = (np.rint(share * last).astype(int) for share in (0.25, 0.5, 0.75, 0.0, 1.0))
    every = np.arange(columns.shape[1])
    quarter, centre, three, least, most = (np.nan_to_num(ordered[at, every]) for at in places)
    with np.errstate(over="ignore"):
        width = np.where(three > quarter, (three - quarter) / 1.349, most - least)
    return centre, np.where(width > 0, width, 1.0)


def scaled(columns: Floats, centre: Floats, width: Floats) -> Floats:
    """Entries as widths from the centre, at most ``FAR`` of them; 0 where one is missing."""
    with np.errstate(over="ignore", invalid="ignore"):
        far = np.clip((columns - centre) / width, -FAR, FAR)
    return np.nan_to_num(far)


def differences(x: Floats, x_prime: Floats) -> Floats:
    """Tell how clearly each column differs, as the largest of a few t-statistics.

    They compare means, squares, and how often an entry is there, 0, the median, or the least or
    largest one of a side.

    Args:
        x: sample of shape (n, d), in which NaN is a missing entry.
        x_prime: sample of shape (m, d).
    """
    slab = max(1, SLAB // (len(x) + len(x_prime)))
    starts = range(0, x.shape[1], slab)
    parts = [_clarity(x[:, at : at + slab], x_prime[:, at : at + slab]) for at in starts]
    return np.concatenate([np.zeros(0), *parts])


def _clarity(x: Floats, x_prime: Floats) -> Floats:
    both = np.concatenate([x, x_prime])
    centre, width = scale(both)
    moderate = scaled(both, centre, width)
    ends = (end.reduce(side) for end in (np.fmin, np.fmax) for side in (x, x_prime))
    atoms = np.zeros_like(centre), centre, *ends
    features = moderate, np.square(moderate), np.isnan(both), *(both == atom for atom in atoms)
    largest = np.zeros(both.shape[1])
    for feature in features:
        spread = feature.std(axis=0) * math.sqrt(1 / len(x) + 1 / len(x_prime))
        change = np.abs(feature[: len(x)].mean(axis=0) - feature[len(x) :].mean(axis=0))
        largest = np.maximum(largest, change / np.where(spread > 0, spread, np.inf))
    return largest


@dataclass(frozen=True)
class ColumnScore:
    """One entry of the output.

    Attributes:
        place: of the entry in the flattened output.
        name: what it is; of a flag, what is true where it is 1.
        flag: whether it is 0 or 1.
    """

    place: int
    name: str
    flag: bool = False
    method: str = "black-box, threshold on one entry"

    def __call__(self, outputs: Floats) -> Floats:
        """The entry of each output, shape (n,)."""
        return outputs.reshape(len(outputs), -1)[:, self.place].astype(np.float64)

    def in_words(self, event: Event) -> str | None:
        """Return what an event of a flag says; None of any other score."""
        yes, no = event.indicator([1.0, 0.0])
        if not self.flag or yes == no:
            return None
        return self.name if yes else f"not: {self.name}"


MOST_TOGETHER = 64
"""Entries that are looked at; of more, those that differ most."""
RUNS_AN_ENTRY = 5
MOST_PAIRED = 1000
"""Entries of which pairs are looked at."""
MOST_SIGNS = 256
"""Entries of whose signs a parity is looked for."""
_CLEAR = 5.0
"""Standard errors by which the product of signs differs, as there are many pairs."""
_SPARE = 40
"""Equations more than unknowns, so that chance solves them with a probability of 2^-40."""
_LEAST = 1e-10
"""Of the widest direction, below which a width is one of rounded numbers."""


def together(x: Floats, x_prime: Floats) -> Iterator[Score]:
    """Scores of entries that tell only together, from a pilot of shape (n, …) on either side."""
    for fit in (NormalScore.fit, PairScore.fit, ParityScore.fit):
        score = fit(x, x_prime)
        if score is not None:
            yield score


@dataclass(frozen=True)
class NormalScore:
    """Ln of the ratio of two normal laws that are fitted to the pilot.

    It sees what no entry and no tree of entries shows: a noise that is published beside the sum
    that it was added to, or entries whose sum is exact, as directions in which hardly anything
    varies.

    Attributes:
        places: of the entries that are looked at.
        laws: of x and of x': centre, shape (d,), and what makes entries of it white, shape (d, d).
    """

    places: NDArray[np.intp] = field(repr=False, compare=False)
    laws: tuple[tuple[Floats, Floats], tuple[Floats, Floats]] = field(repr=False, compare=False)
    method: str = "learned score (normal laws)"
    name: str = "learned score"

    @classmethod
    def fit(cls, x: Floats, x_prime: Floats) -> Self | None:
        """The score of a pilot of shape (n, …); None of single numbers, few runs or infinities."""
        one, other = (side.reshape(len(side), -1) for side in (x, x_prime))
        size = min(MOST_TOGETHER, one.shape[1], len(one) // RUNS_AN_ENTRY)
        if size < 2 or one.shape[1] < 2:
            return None
        places = np.arange(one.shape[1])
        if size < one.shape[1]:
            places = np.argsort(-differences(one, other), kind="stable")[:size]
        chosen = one[:, places], other[:, places]
        if not all(np.abs(side).max() < 1e150 for side in chosen):
            return None
        return cls(places, (_law(chosen[0]), _law(chosen[1])))

    def __call__(self, outputs: Floats) -> Floats:
        """The score of each output, shape (n,)."""
        rows = np.nan_to_num(outputs.reshape(len(outputs), -1)[:, self.places])
        with np.errstate(over="ignore", invalid="ignore"):
            near, far = (np.square((rows - centre) @ white).sum(1) for centre, white in self.laws)
            ratio: Floats = np.nan_to_num(far - near)
        return ratio


def _law(rows: Floats) -> tuple[Floats, Floats]:
    centre = rows.mean(axis=0)
    _, widths, directions = np.linalg.svd(rows - centre, full_matrices=False)
    widths = widths / np.sqrt(len(rows))
    widths = np.maximum(widths, max(_LEAST * widths[0], 1e-150))
    return centre, directions.T / widths


@dataclass(frozen=True)
class PairScore:
    """The product of the signs of two entries.

    Attributes:
        places: of the two.
        centre: of each.
    """

    places: tuple[int, int]
    centre: tuple[float, float]
    method: str = "learned score (product of two entries)"

    @property
    def name(self) -> str:
        """Which entries."""
        first, second = self.places
        return f"product of the signs of entries {first} and {second}"

    @classmethod
    def fit(cls, x: Floats, x_prime: Floats) -> Self | None:
        """Of the two whose product differs most between the sides; None if none clearly does."""
        sides = [side.reshape(len(side), -1) for side in (x, x_prime)]
        if not 2 <= sides[0].shape[1] <= MOST_PAIRED:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            centre = np.median(np.concatenate(sides), axis=0)
        means = [signs.T @ signs / len(signs) for signs in (_signs(s, centre) for s in sides)]
        changed = np.triu(np.abs(means[0] - means[1]), 1)
        first, second = map(int, np.unravel_index(int(changed.argmax()), changed.shape))
        if changed[first, second] < _CLEAR * math.sqrt(2 / len(x)):
            return None
        return cls((first, second), (float(centre[first]), float(centre[second])))

    def __call__(self, outputs: Floats) -> Floats:
        """The score of each output, shape (n,)."""
        entries = outputs.reshape(len(outputs), -1)[:, self.places]
        product: Floats = _signs(entries, self.centre).prod(axis=1)
        return product


def _signs(entries: Floats, centre: Any) -> Floats:
    """-1, 0 or 1 for each entry, infinities among them; 0 where the centre is NaN."""
    signs: Floats = (entries > centre) * 1.0 - (entries < centre)
    return signs


@dataclass(frozen=True)
class ParityScore:
    """The parity of how many of certain entries are above 0, solved from the pilot (mod 2).

    Attributes:
        places: of the entries.
    """

    places: tuple[int, ...]
    method: str = "learned score (parity of signs)"

    @property
    def name(self) -> str:
        """Of how many entries."""
        return f"parity of the signs of {len(self.places)} entries"

    @classmethod
    def fit(cls, x: Floats, x_prime: Floats) -> Self | None:
        """The parity that tells every run of the pilot; None if there is none."""
        signs = [side.reshape(len(side), -1) > 0 for side in (x, x_prime)]
        size = signs[0].shape[1]
        needed = size + 1 + _SPARE
        if not 2 <= size <= MOST_SIGNS or len(x) < needed:
            return None
        rows = np.concatenate([side[:needed] for side in signs])
        table = np.c_[rows, np.ones(len(rows), bool), np.arange(len(rows)) < needed]
        found = _solved(table)
        return None if found is None else cls(tuple(np.flatnonzero(found[:-1]).tolist()))

    def __call__(self, outputs: Floats) -> Floats:
        """0 or 1 for each output, shape (n,)."""
        entries = outputs.reshape(len(outputs), -1)[:, self.places]
        return np.asarray((entries > 0).sum(axis=1) % 2, dtype=np.float64)


def _solved(table: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """Solve equations mod 2, whose last column is their right side; None if nothing does."""
    size, pivots = table.shape[1] - 1, list[int]()
    for column in range(size):
        row = len(pivots)
        places = row + np.flatnonzero(table[row:, column])
        if not len(places):
            continue
        table[[row, places[0]]] = table[[places[0], row]]
        others = table[:, column].copy()
        others[row] = False
        table[others] ^= table[row]
        pivots.append(column)
    if table[len(pivots) :, -1].any():
        return None
    solution = np.zeros(size, dtype=bool)
    solution[pivots] = table[: len(pivots), -1]
    return solution


REPEATS = 3
"""Occurrences in a pilot of continuous outputs from which on a value is no chance."""
MOST_FLAGGED = 10_000
"""Flagged values a side."""
CONTINUOUS = 0.9
"""Share of distinct numbers in outputs from which on they count as continuous."""


@dataclass(frozen=True)
class FlaggedScore:
    """A score that is infinite where an output holds a value that only one side can show.

    Attributes:
        score: of all other outputs.
        of_x: values that tell of x.
        of_x_prime: values that tell of x'.
    """

    score: Score
    of_x: tuple[float, ...]
    of_x_prime: tuple[float, ...]

    @property
    def name(self) -> str:
        """That of the other score, and what it becomes."""
        return f"{self.score.name} (infinite where a value is that of one side alone)"

    @property
    def method(self) -> str:
        """How the evidence is made."""
        return f"{self.score.method}, and values of one side alone"

    def __call__(self, outputs: Floats) -> Floats:
        """Scores, shape (n,)."""
        flat, scores = outputs.reshape(len(outputs), -1), self.score(outputs).astype(np.float64)
        scores[np.isin(flat, self.of_x).any(axis=1)] = np.inf
        scores[np.isin(flat, self.of_x_prime).any(axis=1)] = -np.inf
        return scores

    def alone(self, x: Floats, x_prime: Floats) -> Event | None:
        """The event that a flagged value is shown, on the side that shows it more often.

        Args:
            x: scores of a pilot on x, shape (n,).
            x_prime: those on x'.
        """
        of_x, of_x_prime = int((x == np.inf).sum()), int((x_prime == -np.inf).sum())
        if not of_x and not of_x_prime:
            return None
        if of_x >= of_x_prime:
            return Event(lower=np.inf)
        return Event(upper=-np.inf, direction=Direction.BACKWARD)

    def in_words(self, event: Event) -> str | None:
        """Return what :meth:`alone` says; None of any other event."""
        flag = event.lower == np.inf or event.upper == -np.inf
        return "output holds a value that one side alone shows" if flag else None


def flag_values(score: Score, x: Floats, x_prime: Floats, pair: AuditPair) -> Score:
    """The score, with values flagged if the pilot shows any that only one side can show.

    They are numbers of one data set that the other does not hold, and numbers that come again and
    again on one side only. Of outputs that are not continuous every atom is judged anyway.

    Args:
        score: that was chosen.
        x: pilot outputs on x, shape (n, …).
        x_prime: pilot outputs on x', shape (n, …).
        pair: the data.
    """
    sides = x.ravel(), x_prime.ravel()
    shown = [np.unique(side, return_counts=True) for side in sides]
    if any(
        len(values) < CONTINUOUS * side.size for (values, _), side in zip(shown, sides, strict=True)
    ):
        return score
    held = [_numbers(pair.x), _numbers(pair.x_prime)]
    found = []
    for own, other in ((0, 1), (1, 0)):
        values, counts = shown[own]
        raw = np.setdiff1d(held[own], held[other])
        told = values[np.isin(values, raw) | (counts >= REPEATS)]
        alone = np.setdiff1d(told, shown[other][0])
        found.append(
            tuple(map(float, (np.union1d(alone, raw) if alone.size else alone)[:MOST_FLAGGED]))
        )
    return FlaggedScore(score, found[0], found[1]) if any(found) else score


def _numbers(data: Any) -> Floats:
    """All finite numbers of data of any nesting, up to ``MOST_FLAGGED``."""
    numbers: list[float] = []
    waiting = [data]
    while waiting and len(numbers) < MOST_FLAGGED:
        one = waiting.pop()
        if isinstance(one, np.ndarray) and one.dtype.kind in "biuf":
            numbers.extend(one.ravel()[:MOST_FLAGGED].astype(np.float64).tolist())
        elif isinstance(one, int | float):
            numbers.append(float(one))
        elif isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, list | tuple | set | frozenset | np.ndarray):
            waiting.extend(one)
    held = np.unique(np.array(numbers, dtype=np.float64))
    return held[np.isfinite(held)]
