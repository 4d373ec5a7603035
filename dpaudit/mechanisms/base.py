"""Mechanism: the interface that plans, accountants, the ledger and audits know.

A mechanism has public fields, a privacy profile and a sampler. A pair must dominate all neighbours
at its sensitivity, and be rounded up; nothing here draws or sees data by itself. Exact samplers ask
for entropy by an interface that is here too.

For tests of whether noise was drawn as declared, every draw is turned into its *tail*, the declared
probability of noise at least as large, and its sign. Under the declared law tails are independent
and uniform. What turns the draws of each mechanism is in ``dpaudit/auditing/noise/tails.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base import validate
from dpaudit.base.by_class import by_class, owner
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.fields import Kinded
from dpaudit.mechanisms.pairs import DominatingPair, Floats


class ExactSource(Protocol):
    """Exact samplers with secret entropy, such as :class:`~dpaudit.ledger.SecureNoise`."""

    def step(self, scale: float) -> float:
        """The grid step, a power of two, for continuous noise of that scale.

        Raises:
            UnsupportedError: if no float is so small a step.
        """

    def laplace(self, scale: float, values: NDArray[Any]) -> NDArray[Any]:
        """Whole numbers plus noise of mass proportional to exp(−|k|/scale), as Python's integers.

        Here and in :meth:`normal` value and noise meet, and nowhere else.

        Raises:
            UnsupportedError: if the scale is above 2^52.
        """

    def normal(self, sigma: float, values: NDArray[Any]) -> NDArray[Any]:
        """The same with noise of mass proportional to exp(−k²/2σ²)."""

    def integers(self, bound: int, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Uniform integers in 0…bound − 1."""

    def events(self, probability: float, shape: tuple[int, ...]) -> NDArray[np.bool_]:
        """Independent events of exactly that probability, as the float is."""

    def below(self, bound: int) -> int:
        """One uniform integer in 0…bound − 1, of any size."""


@dataclass(frozen=True, eq=False)
class Tails:
    """Draws as the declared law sees them.

    Attributes:
        tails: declared probability of noise as large as each draw, shape (n,).
        positive: the sign of each draw, shape (n,).
        sizes: absolute draws over their declared mean, shape (n,); empty where that has no meaning.
        normal: absolute standardised draws where the law is normal, shape (n,), else None.
    """

    tails: Floats
    positive: NDArray[np.bool_]
    sizes: Floats
    normal: Floats | None = None

    @classmethod
    def joined(cls, parts: Sequence[Tails]) -> Tails:
        """All draws of several parts of one law."""
        normal = [part.normal for part in parts if part.normal is not None]
        return cls(
            np.concatenate([part.tails for part in parts]),
            np.concatenate([part.positive for part in parts]),
            np.concatenate([part.sizes for part in parts]),
            np.concatenate(normal) if len(normal) == len(parts) else None,
        )


Released = float | int | NDArray[Any]

_FLOATS, _EXACT = "dpaudit.ledger.samplers.floats", "dpaudit.ledger.samplers.exact"
_TAILS = "dpaudit.auditing.noise.tails"


class Norm(StrEnum):
    """In which norm a mechanism measures the distance of neighbouring values."""

    L1 = "l1"
    L2 = "l2"
    CHANGE = "change"
    """Any two inputs are at distance 1: the mechanism protects the whole input."""

    def length(self, change: NDArray[Any]) -> float:
        """Measure a change of a value."""
        if self is Norm.CHANGE:
            return float(change.any())
        return float(np.linalg.norm(change.ravel(), 1 if self is Norm.L1 else 2))


class Schedule(NamedTuple):
    """The steps of a stream, and at how many of them, how far apart, one unit may take part."""

    steps: int
    participations: int
    min_separation: int


@dataclass(frozen=True)
class Mechanism(Kinded, ABC):
    """A randomised release. Fields are public facts; the private value is an argument.

    A subclass has its fields, ``kind`` and ``norm``, its privacy (:meth:`pair`) and a sampler
    (:meth:`sample`), as a method; those of this package are registered by the ledger and by the
    auditors (:func:`~dpaudit.base.by_class.by_class`), as are :meth:`sample_exactly`,
    :meth:`tails` and :meth:`worst_pairs`. It then passes the conformance suite that every
    mechanism's tests inherit. What else it offers decides what can be done with it; what it does
    not offer is refused in one sentence:

    * :meth:`log_density`: attacks that know the law, and the suite's own tests of the pair;
    * :meth:`tails`: the test whether the noise of running code is the declared one;
    * :meth:`sample_exactly`: noise without floating-point leaks;
    * :meth:`probabilities`: proof and refutation by enumeration;
    * :meth:`implied_sensitivity`, :meth:`strength`, :meth:`for_group`, :meth:`worst_pairs`:
      shorter plans and proofs, and better attacks.
    """

    family: ClassVar[str] = "mechanism"
    homes: ClassVar[tuple[str, ...]] = ("dpaudit.mechanisms", "dpaudit.plan")
    norm: ClassVar[Norm]
    real_valued: ClassVar[bool] = False
    """Whether the proof speaks of real-valued noise, which floats only approximate."""
    is_black_box: ClassVar[bool] = False
    """Whether only its privacy is stated, not how it works."""
    zeroed_is_absent: ClassVar[bool] = False
    """Whether a unit whose contribution is zero leaves no other trace than one that is absent, as
    in the sum that noise is added to. If not, as in a count of the units, a sample that a zeroed
    unit may be in does not amplify."""
    tight_in_samples: ClassVar[bool] = True
    """Whether :attr:`is_tight` holds where units are sampled too, as others may weigh nothing."""

    # -- privacy ---------------------------------------------------------------------------------

    @abstractmethod
    def pair(self, sensitivity: float) -> DominatingPair:
        """The pair that dominates this mechanism for neighbours at that distance in ``norm``.

        Raises:
            InputError: if the sensitivity is negative, not finite, or of a kind (a fraction, for an
                integer mechanism) that the mechanism does not accept.
            UnsupportedError: if there is no proof to build on.
        """

    def pair_and_failure(self, sensitivity: float) -> tuple[DominatingPair, float]:
        """The pair, but for an event of some probability that accountants may add up apart.

        Raises:
            InputError: as :meth:`pair`.
            UnsupportedError: as :meth:`pair`.
        """
        return self.pair(sensitivity), 0.0

    def composed_of(self) -> tuple[tuple[Mechanism, float, int], ...]:
        """Uses of others that cost no more than :meth:`pair`, which samples need all the same.

        Each with its sensitivity and number. They may be adaptive; where the whole may cost less
        than all of them, they must not be tight. None for most mechanisms.
        """
        return ()

    def implied_sensitivity(self, contribution_factor: float, entries: int = 1) -> float | None:
        """The sensitivity that follows from the mechanism's own clip, or None if nothing does.

        Args:
            contribution_factor: 2 where any value may become any other, as the values of a central
                server do under every relation; 1 where one unit's own value becomes 0.
            entries: numbers in the value, all of which its owner may change.
        """
        return None

    def strength(self, sensitivity: float) -> tuple[Hashable, Fraction | float] | None:
        """Name this mechanism but for one number, and that number: a larger one costs more.

        Of two mechanisms of one class that are alike but for the number, the weaker must be a
        post-processing of the stronger (Blackwell 1953, *Equivalent comparisons*), so that all that
        is proved of the stronger holds of the weaker. None where nothing is known.
        """
        return None

    def work(self, sensitivity: float) -> float:
        """About how many elementary operations, 10^8 of them a second, its proof takes once more.

        It is asked before anything is computed; most mechanisms have a pair in closed form.
        """
        return 0.0

    def for_group(self, size: int) -> Mechanism | None:
        """A mechanism whose privacy is that of this one for ``size`` units; None if unknown."""
        return None

    def distance(self, one: NDArray[Any], other: NDArray[Any]) -> float:
        """How far two prepared values are apart in ``norm``; infinite where the shapes differ."""
        if one.shape != other.shape:
            return float("inf")
        return self.norm.length(one.astype(np.float64) - other.astype(np.float64))

    @by_class("dpaudit.auditing.subjects.worst_pairs")
    def worst_pairs(self) -> tuple[tuple[Any, Any, str], ...]:
        """Neighbouring values that are most likely told apart, each pair with its description.

        Empty where they follow from the norm, the clip and the sensitivity alone.
        """
        return ()

    @property
    def schedule(self) -> Schedule | None:
        """At which steps one unit may take part in a stream; None for a single release."""
        return None

    @property
    def shuffled_reports(self) -> tuple[int, str] | None:
        """How many reports are shuffled, and of which kind they are; None where none are."""
        return None

    @property
    def protects(self) -> tuple[Any, Any] | None:
        """The unit and the relation of what it is made of; None where the invocation alone says."""
        return None

    @property
    def is_unknown(self) -> bool:
        """Whether nobody states what it costs, nor how far neighbours move a value."""
        return False

    @property
    def is_tight(self) -> bool:
        """Whether one use may cost as much as its pair at each ε, and is not merely dominated."""
        return True

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
        return as_released(self.sample(np.asarray(self.prepare(value))[None], rng)[0])

    def release_many(self, value: ArrayLike, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """``size`` independent releases of the same value, shape (size, *shape of value)."""
        return self.sample(self._repeated(value, size), rng)

    def release_exactly(
        self, value: ArrayLike, sensitivity: float, size: int, source: ExactSource
    ) -> NDArray[Any]:
        """The same without floating-point leaks, with a guarantee of at most the declared one.

        Args:
            value: the private value.
            sensitivity: as declared; it says how much the grid of continuous noise costs.
            size: number of independent releases.
            source: exact samplers.

        Raises:
            InputError: if the mechanism refuses the value; nothing is drawn then.
            UnsupportedError: as :meth:`require_exact`.
        """
        self.require_exact(sensitivity, source)
        return self.sample_exactly(self._repeated(value, size), sensitivity, source)

    def _repeated(self, value: ArrayLike, size: int) -> NDArray[Any]:
        size = validate.integer_at_least(0, size=size)
        prepared = np.asarray(self.prepare(value))
        return np.broadcast_to(prepared, (size, *prepared.shape))

    def checked(self, value: ArrayLike) -> ArrayLike:
        """The value, if the mechanism accepts it.

        Raises:
            InputError: as :meth:`release` would.
        """
        self.prepare(value)
        return value

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """The private value as the noise meets it: validated, and clipped if it has a clip.

        Raises:
            InputError: if the mechanism does not accept it.
        """
        return validate.real_view(value=value)

    @by_class(_FLOATS)
    def sample(self, values: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """One release of each prepared value; the leading axis is that of independent runs.

        Raises:
            UnsupportedError: if the mechanism cannot be drawn.
        """
        raise UnsupportedError(f"{self.kind} has no sampler.")

    # -- release without floating-point leaks ----------------------------------------------------

    @by_class(_EXACT)
    def sample_exactly(
        self, values: NDArray[Any], sensitivity: float, source: ExactSource
    ) -> NDArray[Any]:
        """One exact release of each prepared value, as :meth:`sample`.

        Raises:
            UnsupportedError: if the mechanism has no exact sampler.
        """
        raise UnsupportedError(f"{self.kind} has no exact sampler.")

    @classmethod
    def has_exact_sampler(cls) -> bool:
        """Tell whether there is one; a class with another sampler than its base inherits none."""
        exact = owner(Mechanism.sample_exactly, cls)
        others = (owner(method, cls) for method in cls._samplers())
        return exact is not None and all(issubclass(exact, each) for each in others if each)

    @classmethod
    def _samplers(cls) -> tuple[Any, ...]:
        """The methods by class that decide the law of a release."""
        return (Mechanism.sample,)

    def require_exact(self, sensitivity: float, source: ExactSource, entries: int = 1) -> None:
        """Refuse what cannot be drawn exactly, before there is a value.

        Args:
            sensitivity: as declared.
            source: exact samplers.
            entries: of the value that is to be released.

        Raises:
            UnsupportedError: if there is no exact sampler, or none for that sensitivity or for so
                many entries; or if its integers or its grid do not hold the noise.
        """
        if not self.has_exact_sampler():
            raise UnsupportedError(f"{self.kind} has no exact sampler.")
        self.require_grid(sensitivity, source, entries)

    @by_class(_EXACT)
    def require_grid(self, sensitivity: float, source: ExactSource, entries: int) -> None:
        """Refuse what the exact sampler's grid does not hold; by default it holds everything.

        Raises:
            UnsupportedError: as :meth:`require_exact`.
        """

    # -- law -------------------------------------------------------------------------------------

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """Log-density (or log-mass) of each output given the private value.

        Args:
            outputs: shape (n, *shape of value).
            value: the private value that the density is conditioned on.

        Returns:
            Shape (n,); minus infinity where the output cannot occur.

        Raises:
            UnsupportedError: if the mechanism declares no density.
        """
        raise UnsupportedError(f"{self.kind} declares no density.")

    @by_class(_TAILS)
    def tails(self, released: ArrayLike, value: NDArray[Any], rng: np.random.Generator) -> Tails:
        """The noise of one release, as the declared law sees it.

        Args:
            released: what came out.
            value: what went in, prepared.
            rng: breaks ties of discrete laws.

        Raises:
            UnsupportedError: if the mechanism declares no law that could be tested.
        """
        raise UnsupportedError(f"{self.kind} declares no law of noise that could be tested.")

    @property
    def noise_scale(self) -> float | None:
        """The scale of additive noise, in the units of the value; None where there is none."""
        return None

    def probabilities(self, value: ArrayLike) -> tuple[Fraction | float, ...]:
        """The probability of every output given the value, in an order that is always the same.

        Raises:
            UnsupportedError: if there are infinitely many outputs, or too many to list.
        """
        raise UnsupportedError(
            f"{self.kind} has no finite list of outputs; enumeration needs a mechanism that has "
            "one, such as randomized-response."
        )


def as_released(released: NDArray[Any]) -> Released:
    """One release as it is handed out: a number where it is one."""
    scalar: Released = released.item() if np.ndim(released) == 0 else released
    return scalar


def checked_sensitivity(sensitivity: float) -> float:
    """A finite sensitivity of at least 0."""
    return validate.non_negative(sensitivity=sensitivity)


def changes(sensitivity: float, kind: str) -> bool:
    """The sensitivity of a mechanism that protects its whole input: whether that changes at all.

    Raises:
        InputError: if it is neither 0 nor 1.
    """
    if checked_sensitivity(sensitivity) not in (0.0, 1.0):
        raise InputError(f"sensitivity is {sensitivity}; {kind} takes 0 or 1.")
    return sensitivity == 1


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


def single_entry(array: NDArray[Any], kind: str) -> NDArray[Any]:
    """The private value of a mechanism whose proof covers one number.

    Raises:
        UnsupportedError: if it has several entries.
    """
    if array.size > 1:
        raise UnsupportedError(
            f"value has {array.size} entries; {kind} is accounted for one number at a time, so "
            "release the entries one by one."
        )
    return array


def sum_over_entries(log_densities: Floats) -> Floats:
    """Joint log-density of independent entries: sum over all axes but the first."""
    joint: Floats = log_densities.reshape(len(log_densities), -1).sum(axis=1)
    return joint
