"""What every mechanism is: public fields, a sampler and a privacy profile."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import validate
from dpaudit.errors import InputError, UnsupportedError
from dpaudit.fields import Kinded
from dpaudit.mechanisms.pairs import DominatingPair, Floats

__all__ = ["Mechanism", "Norm"]

Released = float | int | NDArray[Any]


class Norm(StrEnum):
    """In which norm a mechanism measures the distance of neighbouring values."""

    L1 = "l1"
    L2 = "l2"
    CHANGE = "change"
    """Any two inputs are at distance 1: the mechanism protects the whole input."""


@dataclass(frozen=True)
class Mechanism(Kinded, ABC):
    """A randomised release. Fields are public facts; the private value is an argument.

    A subclass is one file: the fields, ``kind``, ``norm``, :meth:`_sample` and :meth:`pair`. It
    then passes the conformance suite that every mechanism's tests inherit.
    """

    family: ClassVar[str] = "mechanism"
    norm: ClassVar[Norm]
    real_valued: ClassVar[bool] = False
    """Whether the proof speaks of real-valued noise, which floats only approximate."""

    # -- privacy ---------------------------------------------------------------------------------

    @abstractmethod
    def pair(self, sensitivity: float) -> DominatingPair:
        """The pair that dominates this mechanism for neighbours at that distance in ``norm``.

        Raises:
            InputError: if the sensitivity is negative, not finite, or of a kind (a fraction, for an
                integer mechanism) that the mechanism does not accept.
            UnsupportedError: if there is no proof to build on.
        """

    def implied_sensitivity(self, contribution_factor: float, entries: int = 1) -> float | None:
        """The sensitivity that follows from the mechanism's own clip, or None if nothing does.

        Args:
            contribution_factor: of the relation.
            entries: numbers in the value, all of which its owner may change.
        """
        return None

    # -- release ---------------------------------------------------------------------------------

    def release(self, value: ArrayLike, rng: np.random.Generator) -> Released:
        """One noisy release of a private value.

        Args:
            value: number or array of finite numbers.
            rng: source of the noise.

        Returns:
            A number for a number, an array of the same shape for an array.

        Raises:
            InputError: if the value is NaN, infinite or of the wrong type; nothing is drawn then.
        """
        released = self.release_many(value, 1, rng)[0]
        scalar: Released = released.item() if np.ndim(released) == 0 else released
        return scalar

    def release_many(self, value: ArrayLike, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """``size`` independent releases of the same value, shape (size, *shape of value)."""
        size = validate.integer_at_least(0, size=size)
        prepared = self._prepare(value)
        return self._sample(np.broadcast_to(prepared, (size, *np.shape(prepared))), rng)

    def checked(self, value: ArrayLike) -> ArrayLike:
        """The value, if the mechanism accepts it.

        Raises:
            InputError: as :meth:`release` would.
        """
        self._prepare(value)
        return value

    def _prepare(self, value: ArrayLike) -> NDArray[Any]:
        """Validate (and clip) the private value before any noise is drawn."""
        return validate.real_array(value=value)

    @abstractmethod
    def _sample(self, values: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """One release of each entry of prepared values (leading axis: independent runs)."""

    @abstractmethod
    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """Log-density (or log-mass) of each output given the private value.

        Args:
            outputs: shape (n, *shape of value).
            value: the private value that the density is conditioned on.

        Returns:
            Shape (n,); minus infinity where the output cannot occur.
        """


def checked_sensitivity(sensitivity: float) -> float:
    """A finite sensitivity of at least 0."""
    return validate.non_negative(sensitivity=sensitivity)


def integer_sensitivity(sensitivity: float, kind: str) -> int:
    """The sensitivity of an integer-valued query.

    Raises:
        InputError: if it is not a whole number.
    """
    number = checked_sensitivity(sensitivity)
    if number != int(number):
        raise InputError(
            f"sensitivity is {sensitivity}; {kind} releases integers and needs a whole number."
        )
    return int(number)


def integer_array(value: ArrayLike) -> NDArray[np.int64]:
    """The private value of an integer mechanism.

    Raises:
        InputError: if it has an entry that is not a whole number within ±2^53.
    """
    array = validate.real_array(value=value)
    if (array != np.floor(array)).any() or (np.abs(array) > 2**53).any():
        raise InputError("value has an entry that is not a whole number within ±2^53; round it.")
    return array.astype(np.int64)


def sum_over_entries(log_densities: Floats) -> Floats:
    """Joint log-density of independent entries: sum over all axes but the first."""
    joint: Floats = log_densities.reshape(len(log_densities), -1).sum(axis=1)
    return joint


def require_proof(kind: str) -> UnsupportedError:
    """The error of a mechanism whose claim no accountant can prove."""
    return UnsupportedError(f"{kind} states a claim without a proof; no accountant can certify it.")
