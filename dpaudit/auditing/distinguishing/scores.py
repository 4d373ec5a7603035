"""Scores: one number for each output, large where ``x`` is the likelier data set.

A score is frozen before the runs that it is tested on, deterministic and picklable. The better it
orders outputs by their likelihood ratio, the fewer runs an audit needs (Neyman and Pearson 1933);
validity never depends on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

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
