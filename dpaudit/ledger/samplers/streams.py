"""Streams of correlated noise, and the running releases that are built on them.

A factorisation A = B C says what a stream costs; here B z is drawn for node noise z, step by step,
with as little kept as the factorisation allows. The ledger's streams, and whoever simulates them,
start from ``Stepwise.start`` or from :func:`noise_stream`. One seed gives the same noise whether a
stream is drawn as a whole or in steps.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base import validate
from dpaudit.base.by_class import implementation
from dpaudit.base.errors import InputError
from dpaudit.mechanisms.base import Mechanism
from dpaudit.mechanisms.continual.factorization import Factorization
from dpaudit.mechanisms.continual.own import OwnMatrix
from dpaudit.mechanisms.continual.release import (
    Continual,
    IndividualGaussian,
    NoiseLaw,
    Stepwise,
    packed_scale,
    require_mirrored,
    require_square,
)
from dpaudit.mechanisms.continual.toeplitz import BufferedToeplitz, Toeplitz
from dpaudit.mechanisms.continual.trees import BinaryTree, HonakerTree, Tree, node_variances
from dpaudit.mechanisms.pairs import Floats

_BLOCK = 64

# -- noise of the nodes ----------------------------------------------------------------------------


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


def require_step_left(taken: int, steps: int) -> None:
    """Refuse a step beyond the last."""
    if taken >= steps:
        raise InputError(
            f"steps is {steps} and all have been released; declare a longer stream beforehand."
        )


def _packed_index(side: int) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
    rows, columns = np.triu_indices(side)
    index = np.empty((side, side), dtype=np.intp)
    index[rows, columns] = index[columns, rows] = np.arange(len(rows))
    return index


# -- noise of the prefixes -------------------------------------------------------------------------


def noise_stream(
    factorization: Factorization,
    shape: Sequence[int],
    sigma: float,
    rng: np.random.Generator,
    symmetric: bool = False,
    law: NoiseLaw = NoiseLaw.NORMAL,
) -> NoiseStream:
    """A stream whose ``step()`` is the noise of the next prefix sum.

    Args:
        factorization: B C; one from outside the package has a method ``stream`` of its node noise.
        shape: shape of one prefix sum.
        sigma: standard deviation of the node noise.
        rng: source of the noise.
        symmetric: whether nodes are symmetric matrices (σ off the diagonal, √2σ on it).
        law: of the node noise.

    Raises:
        InputError: if a field is invalid.
    """
    nodes = NodeNoise(shape, sigma, rng, symmetric=symmetric, law=law)
    stream: NoiseStream = factorization.stream(nodes)
    return stream


@implementation(Factorization.stream, Toeplitz)
class _ConvolutionStream(NoiseStream):
    """All node noise so far, convolved with the decoder's column block by block."""

    def __init__(self, factorization: Toeplitz, noise: NodeNoise) -> None:
        super().__init__(factorization.steps, noise)
        self._column = factorization.decoder_column()
        self._nodes = np.empty((self.steps, noise.size))
        self._block = np.empty((0, noise.size))

    def _advance(self, step: int) -> Floats:
        within = (step - 1) % _BLOCK
        if within == 0:
            self._block = self._next_block(step - 1, min(step - 1 + _BLOCK, self.steps))
        flat: Floats = self._block[within]
        return flat

    def _next_block(self, start: int, stop: int) -> Floats:
        self._nodes[start:stop] = self._noise.draw(stop - start)
        lag = np.arange(start, stop)[:, None] - np.arange(stop)
        weights = np.where(lag >= 0, self._column[lag], 0.0)
        block: Floats = weights @ self._nodes[:stop]
        return block

    @property
    def state_arrays(self) -> int:
        """All nodes drawn so far, and the current block: at most T + 64."""
        drawn = min(-(-self.taken // _BLOCK) * _BLOCK, self.steps)
        return drawn + len(self._block)


@implementation(Factorization.stream, OwnMatrix)
class _MatrixStream(NoiseStream):
    """All node noise so far, and a row of the decoder for each step."""

    def __init__(self, factorization: OwnMatrix, noise: NodeNoise) -> None:
        super().__init__(factorization.steps, noise)
        self._rows = factorization.decoder()
        self._nodes = np.empty((self.steps, noise.size))

    def _advance(self, step: int) -> Floats:
        self._nodes[step - 1] = self._noise.draw(1)[0]
        flat: Floats = self._rows[step - 1, :step] @ self._nodes[:step]
        return flat

    @property
    def state_arrays(self) -> int:
        """All nodes drawn so far."""
        return self.taken


@implementation(Factorization.stream, BufferedToeplitz)
class _BufferedStream(NoiseStream):
    """One exponentially decaying sum of node noise for each buffer; the first does not decay."""

    def __init__(self, factorization: BufferedToeplitz, noise: NodeNoise) -> None:
        super().__init__(factorization.steps, noise)
        self._weights, self._fresh = factorization.weights[1:]
        self._decay = 1 / (1 + np.array([0.0, *factorization.zero_rates]))[:, None]
        self._buffers = np.zeros((len(self._decay), noise.size))

    def _advance(self, step: int) -> Floats:
        fresh = self._noise.draw(1)[0]
        self._buffers *= self._decay
        self._buffers += fresh
        flat: Floats = self._weights @ self._buffers + self._fresh * fresh
        return flat

    @property
    def state_arrays(self) -> int:
        """The number of buffers."""
        return len(self._buffers)


class _StackStream(NoiseStream):
    """A stream that keeps an array for each node of the current prefix, largest node first."""

    def __init__(self, tree: Tree, noise: NodeNoise) -> None:
        super().__init__(tree.steps, noise)
        self._top = tree.levels - 1
        self._stack: list[Floats] = []

    @property
    def state_arrays(self) -> int:
        """At most the number of levels, and two for two steps."""
        return len(self._stack)


@implementation(Factorization.stream, BinaryTree)
class _BinaryStream(_StackStream):
    """The arrays are partial sums over the nodes."""

    def _advance(self, step: int) -> Floats:
        nodes = (step >> self._top) + (step & ((1 << self._top) - 1)).bit_count()
        del self._stack[nodes - 1 :]
        fresh = self._noise.draw(1)[0]
        self._stack.append(self._stack[-1] + fresh if self._stack else fresh)
        return self._stack[-1]


@implementation(Factorization.stream, HonakerTree)
class _HonakerStream(_StackStream):
    """The arrays are estimates of the nodes, merged as siblings complete."""

    def __init__(self, tree: HonakerTree, noise: NodeNoise) -> None:
        super().__init__(tree, noise)
        self._own_weight = node_variances(tree.levels)

    def _advance(self, step: int) -> Floats:
        estimate = self._noise.draw(1)[0]
        completed = min((step & -step).bit_length() - 1, self._top)
        for level in range(1, completed + 1):
            own = self._own_weight[level]
            children = self._stack.pop() + estimate
            estimate = own * self._noise.draw(1)[0] + (1 - own) * children
        self._stack.append(estimate)
        total: Floats = np.add.reduce(self._stack)
        return total


class _FreshNoise(NoiseStream):
    """Noise of each step, independent of all others."""

    state_arrays = 0

    def _advance(self, step: int) -> Floats:
        noise: Floats = self._noise.draw(1)[0]
        return noise


# -- running releases ------------------------------------------------------------------------------


class PrefixSums:
    """A running release: add a private value, receive the noisy sum of all so far.

    Attributes:
        noise: the stream of noise; it says how many steps are taken and left.
    """

    def __init__(self, shape: Sequence[int], noise: NoiseStream, symmetric: bool) -> None:
        self.noise = noise
        self._symmetric = symmetric
        self._sum = np.zeros(tuple(shape))

    def add(self, value: ArrayLike, *, unit: str | None = None) -> Floats:
        """Count one more value and release the prefix sum.

        Args:
            value: shape of one step.
            unit: who contributes, for whoever keeps a record; the sum does not depend on it.

        Returns:
            A new array of the same shape.

        Raises:
            InputError: if all declared steps have been released, or the value has another shape,
                is not finite, or not symmetric where it must be. Nothing is drawn or counted then.
        """
        self.require(value)
        self._sum += np.asarray(value, dtype=np.float64)
        released: Floats = self._sum + self.noise.step()
        return released

    def require(self, value: ArrayLike) -> None:
        """Refuse a value that :meth:`add` would refuse."""
        require_step_left(self.noise.taken, self.noise.steps)
        array = validate.real_array(value=value)
        if array.shape != self._sum.shape:
            raise InputError(f"value has shape {array.shape}; it must be {self._sum.shape}.")
        if self._symmetric:
            require_mirrored(array)


class StepSums(PrefixSums):
    """A running release of the noisy sum of each step on its own."""

    def add(self, value: ArrayLike, *, unit: str | None = None) -> Floats:
        """Release one step; as for :meth:`PrefixSums.add`."""
        self.require(value)
        released: Floats = np.asarray(value, dtype=np.float64) + self.noise.step()
        return released


@implementation(Stepwise.start, Continual)
def _prefix_sums(law: Continual, shape: Sequence[int], rng: np.random.Generator) -> PrefixSums:
    """Adds up, and keeps the state of its noise."""
    return PrefixSums(shape, _noise_of(law, shape, rng), law.is_symmetric)


@implementation(Stepwise.start, IndividualGaussian)
def _step_sums(law: IndividualGaussian, shape: Sequence[int], rng: np.random.Generator) -> StepSums:
    """Each step on its own."""
    return StepSums(shape, _FreshNoise(law.steps, NodeNoise(shape, law.sigma, rng)), False)


@implementation(Mechanism.sample, Continual)
def _whole(law: Continual, values: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """Prefix sums plus the noise of the factorisation's stream."""
    stream = _noise_of(law, (len(values), *values.shape[2:]), rng)
    released = np.cumsum(values, axis=1)
    for step in range(values.shape[1]):
        released[:, step] += stream.step()
    return released


def _noise_of(law: Continual, shape: Sequence[int], rng: np.random.Generator) -> NoiseStream:
    return noise_stream(
        law.factorization, shape, law.noise_sigma, rng, symmetric=law.is_symmetric, law=law.law
    )
