"""Continual release as a mechanism: one declaration, one invocation, for a whole stream."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base import validate
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.fields import Count
from dpaudit.mechanisms.base import Mechanism, Norm
from dpaudit.mechanisms.continual.factorization import Factorization
from dpaudit.mechanisms.continual.noise import (
    NoiseLaw,
    NoiseStream,
    pack,
    packed_scale,
    require_mirrored,
    require_step_left,
    require_stream,
)
from dpaudit.mechanisms.pairs import Floats


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


class Stepwise(Mechanism):
    """A release in steps, which is one invocation whatever their number."""

    adds_up: ClassVar[bool] = False
    """Whether the sensitivity bounds the steps of a unit all together, and not each of them."""

    @abstractmethod
    def start(self, shape: Sequence[int], rng: np.random.Generator) -> PrefixSums:
        """A running release of the same law as :meth:`release` of the whole stream.

        Args:
            shape: shape of one step; () for numbers.
            rng: source of the noise.
        """

    @property
    @abstractmethod
    def touches(self) -> int:
        """How many steps one unit may touch."""


@dataclass(frozen=True, kw_only=True)
class Continual(Stepwise):
    """What Gaussian and Laplace continual release share.

    Attributes:
        factorization: how noise is correlated over the steps.
        participations: at how many steps one participant may contribute, at most.
        min_separation: how many steps lie from one of them to the next, at least.
        fixed_steps: whether a participant who is replaced contributes at the same steps as before,
            as where they are public facts. If not, contributions may vanish at some steps and
            appear at others, which costs :attr:`displacement` times as much; the values of all
            steps are then of one domain with 0 in it. None says nothing, and counts as that.
        cyclic: whether the participations are exactly ``min_separation`` steps apart, as in epochs
            over batches that stay the same; one of them may be left out.
    """

    is_tight = False  # the pair is of all nodes, and what is published may show less
    real_valued: ClassVar[bool] = True
    zeroed_is_absent: ClassVar[bool] = True
    law: ClassVar[NoiseLaw]
    """The law of an entry of node noise."""
    factorization: Factorization
    participations: Count
    min_separation: Count = 1
    fixed_steps: bool | None = None
    cyclic: bool | None = None

    @cached_property
    def sensitivity_factor(self) -> float:
        """How far the noisy nodes move, in ``norm``, if each contribution moves by 1."""
        return self.factorization.sensitivity(
            self.participations, self.min_separation, self.norm, cyclic=bool(self.cyclic)
        )

    @property
    def displacement(self) -> float:
        """How much further the nodes move where one participant makes way for one at other steps.

        Contributions, and 0, are within the sensitivity Δ of each other, as a step moves by no more
        whatever comes, goes or changes. Of a node let a, b ≥ 0 be the weights of the steps of the
        one and of the other, and m, m' the means of what they contribute. For a ≥ b it moves by
        ‖a m − b m'‖ = ‖b (m − m') + (a − b) m‖ ≤ a Δ, else by at most b Δ. Over all nodes
        Σ max(a, b)² ≤ Σ a² + Σ b² ≤ 2 s² in L2, and Σ max(a, b) ≤ 2 s in L1, where s is
        :attr:`sensitivity_factor`. Steps that share no node attain it.
        """
        return 2.0 if self.norm is Norm.L1 else math.nextafter(math.sqrt(2.0), 2.0)

    def work(self, sensitivity: float) -> float:
        """That of the sensitivity of the factorisation."""
        return self.factorization.work(self.participations, self.min_separation, self.norm)

    @property
    @abstractmethod
    def noise_sigma(self) -> float:
        """Standard deviation of the node noise (off the diagonal, for symmetric matrices)."""

    def error(self) -> Floats:
        """Exact standard deviation of each released prefix sum, shape (T,)."""
        return self.factorization.error(self.noise_sigma)

    @property
    def _is_symmetric(self) -> bool:
        return False

    @property
    def touches(self) -> int:
        """The participations."""
        return self.participations

    def start(self, shape: Sequence[int], rng: np.random.Generator) -> PrefixSums:
        """A running release; it adds up and keeps the state of its noise."""
        return PrefixSums(shape, self._noise(shape, rng), self._is_symmetric)

    def _noise(self, shape: Sequence[int], rng: np.random.Generator) -> NoiseStream:
        return self.factorization.sampler(
            shape, self.noise_sigma, rng, symmetric=self._is_symmetric, law=self.law
        )

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """A stream of 1 to T steps along the first axis."""
        array: NDArray[Any] = validate.real_array(value=value)
        require_stream(array, self.factorization.steps)
        if self._is_symmetric:
            require_mirrored(array)
        return array

    def distance(self, one: NDArray[Any], other: NDArray[Any]) -> float:
        """The largest distance of a step; infinite where more steps differ than may."""
        if one.shape != other.shape:
            return float("inf")
        change = one - other
        steps = np.flatnonzero(change.reshape(len(change), -1).any(axis=1))
        if not self.may_take_part(steps.tolist()):
            return float("inf")
        return max((self.norm.length(change[step]) for step in steps), default=0.0)

    def may_take_part(self, steps: Sequence[int]) -> bool:
        """Whether one participant may contribute at these steps, in ascending order."""
        gap, gaps = self.min_separation, [late - soon for soon, late in pairwise(steps)]
        if self.cyclic:
            near = any(between % gap for between in gaps)
            return not near and sum(gaps) < self.participations * gap
        return len(steps) <= self.participations and all(between >= gap for between in gaps)

    def sample(self, values: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """Prefix sums plus the noise of the factorisation's stream."""
        stream = self._noise((len(values), *values.shape[2:]), rng)
        released = np.cumsum(values, axis=1)
        for step in range(values.shape[1]):
            released[:, step] += stream.step()
        return released

    def _whitened(self, outputs: ArrayLike, value: ArrayLike) -> tuple[Floats, float]:
        """Independent node noise that explains the outputs, shape (n, T', entries), and ln |det|.

        The residual y − A x has the law of L z, with L the root of the noise's covariance.
        """
        from scipy.linalg import solve_triangular

        prefix = np.cumsum(self.prepare(value), axis=0)
        released = np.asarray(outputs, dtype=np.float64)
        if released.shape[1:] != prefix.shape:
            raise InputError(
                f"outputs has shape {released.shape}; it must be that of the value, "
                f"{prefix.shape}, after an axis of runs."
            )
        residual = released - prefix
        if self._is_symmetric:
            residual = pack(residual) / packed_scale(residual.shape[-1])
        runs, steps = residual.shape[:2]
        columns = np.moveaxis(residual.reshape(runs, steps, -1), 1, 0)
        root = self.factorization.noise_root()[:steps, :steps]
        nodes = solve_triangular(root, columns.reshape(steps, -1), lower=True)
        entries = columns.shape[2]
        log_determinant = entries * float(np.log(np.diag(root)).sum())
        return np.moveaxis(nodes.reshape(steps, runs, entries), 0, 1), log_determinant

    def _node_noise(self, released: ArrayLike, value: NDArray[Any]) -> Floats:
        """The node noise that explains one release."""
        if not self.factorization.is_square:
            raise UnsupportedError(f"{self.kind} with that factorisation hides its node noise.")
        return self._whitened(np.asarray(released)[None], value)[0]
