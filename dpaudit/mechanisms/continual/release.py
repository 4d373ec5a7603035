"""Continual release as a mechanism: one declaration, one invocation, for a whole stream.

Plans declare a stream with these classes, and accountants ask them for one pair. What one unit may
move over all steps together must follow from the factorisation and the participations.
"""

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
from dpaudit.base.by_class import by_class
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.fields import Count
from dpaudit.mechanisms.base import Mechanism, Norm, Schedule
from dpaudit.mechanisms.continual.factorization import Factorization
from dpaudit.mechanisms.continual.noise import (
    NoiseLaw,
    pack,
    packed_scale,
    require_mirrored,
    require_stream,
)
from dpaudit.mechanisms.pairs import Floats


class Stepwise(Mechanism):
    """A release in steps, which is one invocation whatever their number."""

    adds_up: ClassVar[bool] = False
    """Whether the sensitivity bounds the steps of a unit all together, and not each of them."""

    @by_class("dpaudit.ledger.samplers.streams")
    def start(self, shape: Sequence[int], rng: np.random.Generator) -> Any:
        """A running release of the same law as :meth:`release` of the whole stream.

        Args:
            shape: shape of one step; () for numbers.
            rng: source of the noise.

        Returns:
            :class:`~dpaudit.ledger.samplers.streams.PrefixSums`, or sums of each step.
        """
        raise UnsupportedError(f"{self.kind} cannot be released in steps.")

    @classmethod
    def _samplers(cls) -> tuple[Any, ...]:
        return (*super()._samplers(), Stepwise.start)

    @property
    @abstractmethod
    def touches(self) -> int:
        """How many steps one unit may touch."""


@dataclass(frozen=True, kw_only=True)
class Continual(Stepwise):
    """A running release of prefix sums, Gaussian or Laplace.

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

    @property
    def schedule(self) -> Schedule:
        """As declared, over the steps of the factorisation."""
        return Schedule(self.factorization.steps, self.participations, self.min_separation)

    def work(self, sensitivity: float) -> float:
        """Ask the factorisation, whose sensitivity is all the work."""
        return self.factorization.work(self.participations, self.min_separation, self.norm)

    @property
    @abstractmethod
    def noise_sigma(self) -> float:
        """Standard deviation of the node noise (off the diagonal, for symmetric matrices)."""

    def error(self) -> Floats:
        """Exact standard deviation of each released prefix sum, shape (T,)."""
        return self.factorization.error(self.noise_sigma)

    @property
    def is_symmetric(self) -> bool:
        """Whether the steps are symmetric matrices."""
        return False

    @property
    def touches(self) -> int:
        """The participations."""
        return self.participations

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """A stream of 1 to T steps along the first axis."""
        array: NDArray[Any] = validate.real_array(value=value)
        require_stream(array, self.factorization.steps)
        if self.is_symmetric:
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
        """Tell whether one participant may contribute at these steps, in ascending order."""
        gap, gaps = self.min_separation, [late - soon for soon, late in pairwise(steps)]
        if self.cyclic:
            near = any(between % gap for between in gaps)
            return not near and sum(gaps) < self.participations * gap
        return len(steps) <= self.participations and all(between >= gap for between in gaps)

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
        if self.is_symmetric:
            residual = pack(residual) / packed_scale(residual.shape[-1])
        runs, steps = residual.shape[:2]
        columns = np.moveaxis(residual.reshape(runs, steps, -1), 1, 0)
        root = self.factorization.noise_root()[:steps, :steps]
        nodes = solve_triangular(root, columns.reshape(steps, -1), lower=True)
        entries = columns.shape[2]
        log_determinant = entries * float(np.log(np.diag(root)).sum())
        return np.moveaxis(nodes.reshape(steps, runs, entries), 0, 1), log_determinant

    def node_noise(self, released: ArrayLike, value: NDArray[Any]) -> Floats:
        """The node noise that explains one release."""
        if not self.factorization.is_square:
            raise UnsupportedError(f"{self.kind} with that factorisation hides its node noise.")
        return self._whitened(np.asarray(released)[None], value)[0]
