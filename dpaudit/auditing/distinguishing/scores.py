"""Scores: one number for each output, large where ``x`` is the likelier data set.

A score is frozen before the runs that it is tested on, deterministic and picklable. The better it
orders outputs by their likelihood ratio, the fewer runs an audit needs (Neyman and Pearson 1933);
validity never depends on it.

Some entries tell only together: by covariances, by a product, by the parity of signs. Which of many
columns differ between two samples serves a choice, and is never evidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.distinguishing.outputs import Partial, Raised, ScoreError
from dpaudit.auditing.evidence.events import Event
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


class CodeScore:
    """A score that runs the code under attack, on its real data.

    It is slow, and each output that it is shown with would be one more release of these data.
    """


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
class Leading:
    """A score of the first columns of rows that have others beside.

    Attributes:
        score: of rows with these columns alone.
        width: how many they are.
    """

    score: Score
    width: int

    @property
    def name(self) -> str:
        """That of the score."""
        return self.score.name

    @property
    def method(self) -> str:
        """That of the score."""
        return self.score.method

    def __call__(self, outputs: Floats) -> Floats:
        """The scores of rows, shape (n,)."""
        return self.score(outputs[:, : self.width])


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


@dataclass(frozen=True)
class OutputScore:
    """A function of one output, whatever that is, to a number: a score of one's own.

    Attributes:
        function: of an output as the code returns it.
        label: what it is called; the function's own name where not given.
    """

    function: Callable[[Any], Any]
    label: str = ""
    method: str = "score that was given"

    @property
    def name(self) -> str:
        """What an event speaks of."""
        return f"{self.label or getattr(self.function, '__name__', 'score')}(output)"

    def of(self, output: Any) -> float:
        """The number of one output; NaN of an exception, which has none.

        Raises:
            ScoreError: if the function raises, or gives no number.
        """
        output = output.output if isinstance(output, Partial) else output
        if isinstance(output, Raised):
            return math.nan
        try:
            return float(self.function(output))
        except Exception as error:  # noqa: BLE001 - foreign code may raise anything
            raise ScoreError(
                f"{self.name} failed with {type(error).__name__} (for an output of type "
                f"{type(output).__name__}); it must give a number for every output."
            ) from None

    def __call__(self, outputs: Floats) -> Floats:
        """The scores of outputs that are rows of an array, shape (n,)."""
        return np.array([self.of(output) for output in outputs], dtype=np.float64)


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
class MeansScore:
    """Sum of the entries, each weighted by how far its means differ on the pilot.

    That is ln of the ratio of two laws of independent entries which differ by a shift alone, or of
    bits. It has one number to learn for each entry, and so it stands many entries of which each
    tells little, where a classifier learns chance.

    Attributes:
        spread: centre and width of each entry, shape (d,).
        weights: of each, in its widths.
    """

    spread: tuple[Floats, Floats] = field(repr=False, compare=False)
    weights: Floats = field(repr=False, compare=False)
    name: str = "weighted sum of the entries"
    method: str = "learned score (differences of means)"

    @classmethod
    def fit(cls, x: Floats, x_prime: Floats) -> Self:
        """From a pilot of shape (n, …) on either side."""
        sides = [side.reshape(len(side), -1) for side in (x, x_prime)]
        spread = scale(np.concatenate(sides))
        one, other = (scaled(side, *spread) for side in sides)
        variance = (one.var(axis=0) + other.var(axis=0)) / 2
        shift = one.mean(axis=0) - other.mean(axis=0)
        return cls(spread, shift / np.where(variance > 0, variance, np.inf))

    def __call__(self, outputs: Floats) -> Floats:
        """The weighted sums, shape (n,)."""
        sums: Floats = scaled(outputs.reshape(len(outputs), -1), *self.spread) @ self.weights
        return sums


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
        return self.name if yes else _negated(self.name)


_NEGATED = (
    (" is present", " is absent"),
    (" is ", " is not "),
    (" has ", " does not have "),
    (" holds ", " does not hold "),
    ("it raises ", "it does not raise "),
)


def _negated(fact: str) -> str:
    """The sentence that a fact does not hold.

    >>> _negated("output['b'] is present"), _negated("it raises KeyError"), _negated("odd")
    ("output['b'] is absent", 'it does not raise KeyError', 'not: odd')
    """
    for yes, no in _NEGATED:
        if yes in fact:
            return fact.replace(yes, no, 1)
    return f"not: {fact}"


MOST_TOGETHER = 64
"""Entries that are looked at; of more, those that differ most."""
RUNS_AN_ENTRY = 5
MOST_PAIRED = 1000
"""Entries of which pairs are looked at."""
MOST_IN_CELLS = 24
"""Entries of which differences, and tables of pairs, are looked at."""
FEW_VALUES = 16
"""Of an entry, that are cells of their own."""
MOST_SIGNS = 256
"""Entries of whose signs a parity is looked for."""
_CLEAR = 5.0
"""Standard errors by which a pair of entries differs, as there are many."""
_SPARE = 40
"""Equations more than unknowns, so that chance solves them with a probability of 2^-40."""
_LEAST = 1e-10
"""Of the widest direction, below which a width is one of rounded numbers."""


def together(x: Floats, x_prime: Floats) -> Iterator[Score]:
    """Scores of entries that tell only together, from a pilot of shape (n, …) on either side."""
    for fit in (NormalScore.fit, difference, PairScore.fit, ParityScore.fit):
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
    """Ln of the ratio of how often two entries lie in a cell, from the pilot.

    It sees one field given another: their product, equality, or a table of both.

    Attributes:
        places: of the two.
        cuts: of each.
        table: of the cells, which are intervals between cuts and the cuts themselves.
    """

    places: tuple[int, int]
    cuts: tuple[Floats, Floats] = field(repr=False, compare=False)
    table: Floats = field(repr=False, compare=False)
    method: str = "learned score (two entries together)"

    @property
    def name(self) -> str:
        """Which entries."""
        first, second = self.places
        return f"log ratio of entries {first} and {second} together"

    @classmethod
    def fit(cls, x: Floats, x_prime: Floats) -> Self | None:
        """Of the two that together differ most between the sides; None if none clearly does."""
        sides = [side.reshape(len(side), -1) for side in (x, x_prime)]
        size = sides[0].shape[1]
        if not 2 <= size <= MOST_PAIRED:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            centre = np.median(np.concatenate(sides), axis=0)
        places = _by_signs(sides, centre)
        cuts = [centre[[at]] for at in places or ()]
        if size <= MOST_IN_CELLS:
            every = [_cuts(np.concatenate([side[:, at] for side in sides])) for at in range(size)]
            if found := _by_cells(sides, every):
                places, cuts = found, [every[at] for at in found]
        if places is None:
            return None
        made = cls(places, (cuts[0], cuts[1]), np.zeros([2 * len(each) + 1 for each in cuts]))
        counts = [np.bincount(made._cells(side), minlength=made.table.size) for side in sides]
        ratios = np.log((counts[0] + 0.5) / (counts[1] + 0.5))
        return replace(made, table=ratios.reshape(made.table.shape))

    def _cells(self, flat: Floats) -> NDArray[np.intp]:
        codes = (_codes(flat[:, at], cut) for at, cut in zip(self.places, self.cuts, strict=True))
        return np.ravel_multi_index(tuple(codes), self.table.shape)

    def __call__(self, outputs: Floats) -> Floats:
        """The score of each output, shape (n,)."""
        scores: Floats = self.table.ravel()[self._cells(outputs.reshape(len(outputs), -1))]
        return scores


def _codes(values: Floats, cuts: Floats) -> NDArray[np.intp]:
    """Even numbers between cuts, odd ones on them."""
    return np.searchsorted(cuts, values, "left") + np.searchsorted(cuts, values, "right")


def _cuts(values: Floats) -> Floats:
    """Each value, if there are few, else the quartiles."""
    few = np.unique(values)
    return few if len(few) <= FEW_VALUES else np.unique(np.quantile(few, [0.25, 0.5, 0.75]))


def _by_signs(sides: Sequence[Floats], centre: Floats) -> tuple[int, int] | None:
    signs = ((side > centre) * 1.0 - (side < centre) for side in sides)
    means = [each.T @ each / len(each) for each in signs]
    changed = np.triu(np.abs(means[0] - means[1]), 1)
    first, second = map(int, np.unravel_index(int(changed.argmax()), changed.shape))
    clear = changed[first, second] >= _CLEAR * math.sqrt(2 / len(sides[0]))
    return (first, second) if clear else None


def _by_cells(sides: Sequence[Floats], cuts: Sequence[Floats]) -> tuple[int, int] | None:
    """The two whose cells differ most by chi-square beyond what either tells alone."""
    widths = [2 * len(each) + 1 for each in cuts]
    starts = np.cumsum([0, *widths])
    counts = []
    for side in sides:
        codes = [_codes(side[:, at], each) for at, each in enumerate(cuts)]
        hot = np.zeros((len(side), starts[-1]), dtype=np.float32)
        hot[np.arange(len(side))[:, None], np.stack(codes, axis=1) + starts[:-1]] = 1
        counts.append((hot.T @ hot).astype(np.float64))
    both = counts[0] + counts[1]
    squares = np.square(counts[0] - counts[1]) / np.maximum(both, 1)
    sums, cells = (
        np.add.reduceat(np.add.reduceat(each, starts[:-1], axis=0), starts[:-1], axis=1)
        for each in (squares, (both > 0) * 1.0)
    )
    excess = sums - cells
    alone = np.diag(excess)
    clear = np.triu((excess - alone - alone[:, None]) / np.sqrt(2 * cells), 1)
    first, second = map(int, np.unravel_index(int(clear.argmax()), clear.shape))
    return (first, second) if clear[first, second] >= _CLEAR else None


def difference(x: Floats, x_prime: Floats) -> Score | None:
    """The difference of two entries that differs most between the sides, if any clearly does."""
    sides = [side.reshape(len(side), -1) for side in (x, x_prime)]
    if not 2 <= sides[0].shape[1] <= MOST_IN_CELLS:
        return None
    first, second = np.triu_indices(sides[0].shape[1], 1)
    with np.errstate(over="ignore", invalid="ignore"):
        told = differences(*(side[:, first] - side[:, second] for side in sides))
    best = int(told.argmax())
    alone = differences(*sides)
    if told[best] < max(_CLEAR, 1.1 * alone[first[best]], 1.1 * alone[second[best]]):
        return None
    places = int(first[best]), int(second[best])
    name = f"entry {places[0]} less entry {places[1]}"
    return FixedScore(partial(_difference, places), name, "learned score (difference of entries)")


def _difference(places: tuple[int, int], outputs: Floats) -> Floats:
    one, other = (outputs.reshape(len(outputs), -1)[:, at] for at in places)
    with np.errstate(over="ignore", invalid="ignore"):
        return one - other


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
