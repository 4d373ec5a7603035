"""Where continual release draws its node noise, and the streams that turn it into prefix noise."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.mechanisms.pairs import Floats


class NoiseLaw(StrEnum):
    """The law of one entry of node noise; both are scaled to a given standard deviation."""

    NORMAL = "normal"
    LAPLACE = "laplace"


class NodeNoise:
    """Independent draws of node noise, as flat vectors.

    A symmetric matrix is drawn as its upper triangle, σ off the diagonal and √2σ on it. That is
    the law of (V + Vᵀ)/√2 for V with independent N(0, σ²) entries. Its density is proportional to
    exp(−Σ_{i<j} n_ij²/2σ² − Σ_i n_ii²/4σ²) = exp(−‖N‖_F²/4σ²): isotropic on the symmetric
    matrices with standard deviation √2σ per unit of Frobenius norm, so that a shift D of one node
    costs μ² = ‖D‖_F²/(2σ²).

    Args:
        shape: shape of one node; with ``symmetric`` the two trailing axes are the matrix.
        sigma: standard deviation of an entry (off the diagonal, if symmetric).
        rng: source of the noise.
        symmetric: whether nodes are symmetric matrices.
        law: of the entries.

    Raises:
        InputError: if a field is invalid, or the shape is not that of square matrices.
    """

    def __init__(
        self,
        shape: Sequence[int],
        sigma: float,
        rng: np.random.Generator,
        *,
        symmetric: bool = False,
        law: NoiseLaw = NoiseLaw.NORMAL,
    ) -> None:
        self.shape = tuple(validate.integer_at_least(0, shape=length) for length in shape)
        self._sigma = validate.positive(sigma=sigma)
        self._rng = rng
        self._law = law
        self._index = None
        self._scale: Floats | None = None
        if symmetric:
            require_square(self.shape)
            self._index = _packed_index(self.shape[-1])
            self._scale = packed_scale(self.shape[-1])
            self._packed: tuple[int, ...] = (*self.shape[:-2], len(self._scale))
        else:
            self._packed = self.shape
        self.size = math.prod(self._packed)

    def draw(self, count: int) -> Floats:
        """``count`` nodes, shape (count, size)."""
        size = (count, *self._packed)
        if self._law is NoiseLaw.LAPLACE:
            noise = self._rng.laplace(scale=self._sigma / math.sqrt(2), size=size)
        else:
            noise = self._rng.normal(scale=self._sigma, size=size)
        if self._scale is not None:
            noise *= self._scale
        return noise.reshape(count, self.size)

    def unpack(self, flat: Floats) -> Floats:
        """A flat vector as a new array of ``shape``."""
        if self._index is None:
            return flat.reshape(self.shape).copy()
        full: Floats = flat.reshape(self._packed).take(self._index, axis=-1)
        return full


class NoiseStream(ABC):
    """The noise of the released prefix sums, one step at a time.

    Attributes:
        steps: how many there are at most.
        taken: how many have been taken.
    """

    def __init__(self, steps: int, noise: NodeNoise) -> None:
        self.steps = steps
        self.taken = 0
        self._noise = noise

    def step(self) -> Floats:
        """The noise to add to the next prefix sum.

        Raises:
            InputError: if all steps have been taken; nothing is drawn then.
        """
        require_step_left(self.taken, self.steps)
        self.taken += 1
        return self._noise.unpack(self._advance(self.taken))

    @abstractmethod
    def _advance(self, step: int) -> Floats:
        """The flat noise of that step, counted from 1."""

    @property
    @abstractmethod
    def state_arrays(self) -> int:
        """How many arrays of the size of one node are held for later steps."""


def pack(matrices: Floats) -> Floats:
    """Upper triangles of matrices on the two trailing axes, shape (..., m(m+1)/2)."""
    rows, columns = np.triu_indices(matrices.shape[-1])
    upper: Floats = matrices[..., rows, columns]
    return upper


def packed_scale(side: int) -> Floats:
    """√2 at the diagonal entries of a packed triangle, 1 elsewhere."""
    rows, columns = np.triu_indices(side)
    return np.where(rows == columns, math.sqrt(2), 1.0)


def require_mirrored(matrices: Floats) -> None:
    """Refuse matrices that are not exactly symmetric: noise would not cover the difference."""
    require_square(matrices.shape)
    if not np.array_equal(matrices, np.swapaxes(matrices, -1, -2)):
        raise InputError("value has a matrix that is not symmetric; pass (X + Xᵀ)/2.")


def require_square(shape: tuple[int, ...]) -> None:
    """Refuse shapes whose two trailing axes are not a square matrix."""
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise InputError(f"shape is {shape}; symmetric noise needs square matrices, (..., m, m).")


def require_step_left(taken: int, steps: int) -> None:
    """Refuse a step beyond the last."""
    if taken >= steps:
        raise InputError(
            f"steps is {steps} and all have been released; declare a longer stream beforehand."
        )


def require_stream(value: Floats, steps: int) -> None:
    """Refuse an array whose first axis is not that of 1 to ``steps`` steps."""
    if value.ndim == 0 or not 1 <= len(value) <= steps:
        raise InputError(
            f"value has shape {value.shape}; its first axis must be 1 to {steps} steps."
        )


def _packed_index(side: int) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
    rows, columns = np.triu_indices(side)
    index = np.empty((side, side), dtype=np.intp)
    index[rows, columns] = index[columns, rows] = np.arange(len(rows))
    return index
