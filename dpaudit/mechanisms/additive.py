"""Mechanisms that add noise: what they share, and what they need to say for themselves.

Laplace, normal, staircase and integer noise extend these classes. Noise of all entries must be
independent and of one law, whatever the value is.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base.by_class import by_class
from dpaudit.base.errors import UnsupportedError
from dpaudit.mechanisms.base import Mechanism, integer_array, sum_over_entries
from dpaudit.mechanisms.pairs import Floats
from dpaudit.mechanisms.tails import Tails

_MOST_MASSES, _RARE = 10**6, 1e-9


@dataclass(frozen=True)
class AdditiveNoise(Mechanism):
    """Adds independent noise of one law to every entry of the value.

    Where units are sampled under zero-out, the value is to be their sum, or a function of it.

    A subclass says how noise is drawn (:meth:`noise`) and what its law is
    (:meth:`log_noise_density`, and :meth:`noise_tails` if it is to be tested).
    """

    numpy_law: ClassVar[str] = ""
    """The method of ``numpy.random.Generator`` that draws this noise with ``scale``, if any."""
    long_shift_dominates: ClassVar[bool] = False
    """Whether one long shift costs at least as much as several of the same total length."""
    zeroed_is_absent: ClassVar[bool] = True

    @by_class("dpaudit.ledger.samplers.floats")
    def noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[Any]:
        """Independent draws of the noise of one entry."""
        raise UnsupportedError(f"{self.kind} has no sampler.")

    @classmethod
    def _samplers(cls) -> tuple[Any, ...]:
        return (*super()._samplers(), AdditiveNoise.noise)

    @abstractmethod
    def log_noise_density(self, noise: Floats) -> Floats:
        """Log-density (or log-mass) of the noise of one entry, of any shape."""

    @by_class("dpaudit.auditing.noise.tails")
    def noise_tails(self, noise: Floats, rng: np.random.Generator) -> Tails:
        """The noise of entries, of any shape, as the declared law sees it.

        Raises:
            UnsupportedError: if the mechanism declares no law that could be tested.
        """
        raise UnsupportedError(f"{self.kind} declares no law of noise that could be tested.")

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """Sum over entries of the log-density of the noise."""
        noise = np.asarray(outputs, dtype=np.float64) - self.prepare(value)
        return sum_over_entries(self.log_noise_density(noise))


@dataclass(frozen=True)
class IntegerNoise(AdditiveNoise):
    """Adds integer noise, symmetric about 0, to integers; a subclass also says the mean of |k|."""

    @abstractmethod
    def log_mass(self, noise: Floats) -> Floats:
        """Log-mass of integers, of any shape."""

    @abstractmethod
    def mean_size(self) -> float:
        """The mean of |k|."""

    def at_least(self, noise: Floats) -> Floats:
        """P[noise ≥ n] for whole numbers, of any shape; by summation, of at most a million masses.

        Raises:
            UnsupportedError: if noise of more than a million is no rarity.
        """
        last = int(min(np.abs(noise).max(initial=0.0) + 1, _MOST_MASSES))
        masses = np.exp(self.log_mass(np.arange(last, dtype=np.float64)))
        beyond = max(0.5 - masses[0] / 2 - float(masses[1:].sum()), 0.0)
        if last == _MOST_MASSES and beyond > _RARE:
            raise UnsupportedError(f"{self.kind} has noise too wide for a test of its law.")
        tails = np.append(masses, beyond)[::-1].cumsum()[::-1]  # P[noise ≥ n] for n = 0…last
        n = np.where(noise > 0, noise, 1 - noise)
        tail = tails[np.minimum(n, last).astype(np.int64)]
        return np.where(noise > 0, tail, 1 - tail)

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """Whole numbers within ±2^53."""
        return integer_array(value)

    def log_noise_density(self, noise: Floats) -> Floats:
        """The log-mass, minus infinity between the integers."""
        return np.where(noise == np.floor(noise), self.log_mass(noise), -np.inf)
