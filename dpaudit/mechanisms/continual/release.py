"""Continual release: one declaration, and one invocation, for a whole stream.

Node noise is Gaussian or Laplace, or has a budget of its own for each unit. Plans declare a stream
with these classes, and accountants ask them for one pair. What one unit may move over all steps
together must follow from the factorisation and the participations.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base import validate
from dpaudit.base.by_class import by_class
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.fields import Count, Positive
from dpaudit.mechanisms.additive import Gaussian, least_scale
from dpaudit.mechanisms.base import Mechanism, Norm, Schedule, checked_sensitivity
from dpaudit.mechanisms.continual.factorization import Factorization
from dpaudit.mechanisms.pairs import Floats, GaussianPair, LaplacePair, least_deviation, normal_pair


class NoiseLaw(StrEnum):
    """The law of one entry of node noise; both are scaled to a given standard deviation."""

    NORMAL = "normal"
    LAPLACE = "laplace"


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


def require_stream(value: Floats, steps: int) -> None:
    """Refuse an array whose first axis is not that of 1 to ``steps`` steps."""
    if value.ndim == 0 or not 1 <= len(value) <= steps:
        raise InputError(
            f"value has shape {value.shape}; its first axis must be 1 to {steps} steps."
        )


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
            raise UnsupportedError(f"with that factorisation, {self.kind} hides its node noise.")
        return self._whitened(np.asarray(released)[None], value)[0]


@dataclass(frozen=True, kw_only=True)
class ContinualGaussian(Continual):
    """All prefix sums of a stream of T vectors or symmetric matrices, with Gaussian node noise.

    In a plan it is *one* invocation. Its sensitivity is the L2 distance (Frobenius for matrices) by
    which one contribution of a participant can move one step under the relation; the mechanism
    itself counts the nodes and the participations.

    Attributes:
        sigma: standard deviation of the node noise; for symmetric matrices σ off the diagonal and
            √2σ on it, the law of (V + Vᵀ)/√2.
        factorization: how noise is correlated over the steps.
        participations: at how many steps one participant may contribute, at most.
        min_separation: how many steps lie from one of them to the next, at least.
        fixed_steps: whether a participant who is replaced contributes at the same steps as before.
        symmetric: whether the steps are symmetric matrices.

    >>> from dpaudit.mechanisms.continual import BinaryTree
    >>> tree = ContinualGaussian(sigma=2.0, factorization=BinaryTree(16), participations=1)
    >>> round(tree.pair(1.0).mu, 9)
    1.0
    """

    kind: ClassVar[str] = "continual-gaussian"
    norm: ClassVar[Norm] = Norm.L2
    law: ClassVar[NoiseLaw] = NoiseLaw.NORMAL
    sigma: Positive
    symmetric: bool = False

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        delta: float,
        sensitivity: float,
        factorization: Factorization,
        participations: int,
        min_separation: int = 1,
        fixed_steps: bool | None = None,
        symmetric: bool = False,
    ) -> ContinualGaussian:
        """The least σ for (ε, δ): the analytic Gaussian mechanism on the nodes.

        Neighbours are to contribute at the same steps; where they may not, pass the sensitivity
        times :attr:`displacement`.

        Raises:
            InputError: as :meth:`Gaussian.calibrated <dpaudit.mechanisms.Gaussian.calibrated>`.
        """
        factor = factorization.sensitivity(participations, min_separation)
        shift = Fraction(validate.positive(sensitivity=sensitivity)) * Fraction(factor)
        return cls(
            sigma=least_deviation(
                lambda sigma: normal_pair(shift, _deviation(sigma, symmetric)),
                epsilon=epsilon,
                delta=delta,
            ),
            factorization=factorization,
            participations=participations,
            min_separation=min_separation,
            fixed_steps=fixed_steps,
            symmetric=symmetric,
        )

    def pair(self, sensitivity: float) -> GaussianPair:
        """N(Δs/σ, 1) against N(0, 1), with s the factorisation's sensitivity; μ is rounded up.

        For symmetric matrices the node noise is isotropic in Frobenius norm with deviation √2σ.
        """
        shift = Fraction(checked_sensitivity(sensitivity)) * Fraction(self.sensitivity_factor)
        return normal_pair(shift, _deviation(self.sigma, self.symmetric))

    @property
    def noise_sigma(self) -> float:
        """σ of the normal noise of one node."""
        return self.sigma

    @property
    def is_symmetric(self) -> bool:
        """As declared."""
        return self.symmetric

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """Joint normal log-density of all prefix sums (of the upper triangles, if symmetric).

        Outputs that are not symmetric where they must be have density 0.
        """
        outputs = np.asarray(outputs, dtype=np.float64)
        nodes, log_determinant = self._whitened(outputs, value)
        entries = nodes.shape[1] * nodes.shape[2]
        logs = -0.5 * (nodes / self.sigma) ** 2 - math.log(self.sigma * math.sqrt(2 * math.pi))
        joint: Floats = logs.sum(axis=(1, 2)) - log_determinant
        if not self.symmetric:
            return joint
        side, steps = outputs.shape[-1], outputs.shape[1]
        joint -= entries // len(packed_scale(side)) * float(np.log(packed_scale(side)).sum())
        mirrored = (outputs == np.swapaxes(outputs, -1, -2)).reshape(len(outputs), steps, -1)
        return np.where(mirrored.all(axis=(1, 2)), joint, -np.inf)


def _deviation(sigma: float, symmetric: bool) -> Fraction:
    """That of the node noise in its norm, rounded down: √2σ for symmetric matrices."""
    return Fraction(sigma) * (Fraction(math.nextafter(math.sqrt(2), 0.0)) if symmetric else 1)


@dataclass(frozen=True, kw_only=True)
class ContinualLaplace(Continual):
    """All prefix sums of a stream with Laplace noise in the nodes: pure differential privacy.

    Its sensitivity is in L1. Trees are the factorisations that are good for it: one contribution
    moves ``levels`` nodes.

    Attributes:
        scale: scale b of the node noise.
        factorization: how noise is correlated over the steps.
        participations: at how many steps one participant may contribute, at most.
        min_separation: how many steps lie from one of them to the next, at least.
        fixed_steps: whether a participant who is replaced contributes at the same steps as before.

    >>> from dpaudit.mechanisms.continual import BinaryTree
    >>> tree = BinaryTree(1024)
    >>> ContinualLaplace(scale=10.0, factorization=tree, participations=1).pair(1.0).pure_epsilon
    Fraction(1, 1)
    """

    kind: ClassVar[str] = "continual-laplace"
    norm: ClassVar[Norm] = Norm.L1
    law: ClassVar[NoiseLaw] = NoiseLaw.LAPLACE
    scale: Positive

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        sensitivity: float,
        factorization: Factorization,
        participations: int,
        min_separation: int = 1,
        fixed_steps: bool | None = None,
    ) -> ContinualLaplace:
        """The least scale whose ε does not exceed the wish, in exact arithmetic.

        Neighbours are to contribute at the same steps; where they may not, pass the sensitivity
        times :attr:`displacement`.

        Raises:
            InputError: as :meth:`Laplace.calibrated <dpaudit.mechanisms.Laplace.calibrated>`.
        """
        factor = factorization.sensitivity(participations, min_separation, Norm.L1)
        shift = Fraction(validate.positive(sensitivity=sensitivity)) * Fraction(factor)
        return cls(
            scale=least_scale(shift, epsilon),
            factorization=factorization,
            participations=participations,
            min_separation=min_separation,
            fixed_steps=fixed_steps,
        )

    def pair(self, sensitivity: float) -> LaplacePair:
        """A Laplace pair of ε = Δs/b in exact arithmetic, s the factorisation's L1 sensitivity."""
        shift = Fraction(checked_sensitivity(sensitivity)) * Fraction(self.sensitivity_factor)
        return LaplacePair(shift / Fraction(self.scale))

    @property
    def noise_sigma(self) -> float:
        """√2 b, the standard deviation of the Laplace noise of one node."""
        return math.sqrt(2) * self.scale

    def log_density(self, outputs: ArrayLike, value: ArrayLike) -> Floats:
        """Joint log-density of all prefix sums.

        Raises:
            UnsupportedError: if there are more nodes than prefix sums, as in Honaker's tree: the
                density is then an integral without a closed form.
        """
        if not self.factorization.is_square:
            raise UnsupportedError(
                f"{self.kind} on a {self.factorization.kind} has no closed density; use a "
                "factorisation with as many nodes as steps."
            )
        nodes, log_determinant = self._whitened(outputs, value)
        logs = -np.abs(nodes) / self.scale - math.log(2 * self.scale)
        joint: Floats = logs.sum(axis=(1, 2)) - log_determinant
        return joint


@dataclass(frozen=True)
class IndividualGaussian(Gaussian, Stepwise):
    """Noisy sums of parts chosen step by step, while a unit's parts together stay within a bound.

    Individual accounting (Feldman and Zrnic 2021, *Individual privacy accounting via a Rényi
    filter*): a unit is charged what its own parts cost, and adds nothing more when its budget is
    used up; the run goes on without it. In a plan it is *one* invocation. Its sensitivity is the
    root of the summed squares of the L2 distances by which one unit can move the steps.

    However the steps are chosen from what was released before, the whole is as private as one
    Gaussian release of that sensitivity: given the releases so far, a unit moves a step by a known
    vector, and the squares of their lengths never add up to more (Smith and Thakurta 2022, *Fully
    adaptive composition for Gaussian differential privacy*; Koskela, Tobaben and Honkela 2023,
    *Individual privacy accounting with Gaussian differential privacy*).

    The ledger bounds the parts, see :meth:`Ledger.individual <dpaudit.ledger.Ledger.individual>`,
    and nothing shows who is used up, which is private.

    Attributes:
        sigma: standard deviation of the noise of an entry of every step.
        steps: how many steps there may be; more of them cost nothing.

    >>> IndividualGaussian(sigma=4.0, steps=1000).pair(2.0).mu
    0.5
    """

    kind: ClassVar[str] = "individual-gaussian"
    adds_up: ClassVar[bool] = True
    clip_norm: None = field(default=None, init=False, repr=False, compare=False)
    steps: Count

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        delta: float,
        sensitivity: float,
        clip_norm: float | None = None,
        steps: int = 1,
    ) -> IndividualGaussian:
        """The least σ for (ε, δ), whatever the number of steps; as for the base.

        Raises:
            InputError: as :meth:`Gaussian.calibrated <dpaudit.mechanisms.Gaussian.calibrated>`.
        """
        if clip_norm is not None:
            raise InputError(
                "clip_norm bounds one release only; bound all parts together by a contribution."
            )
        one = Gaussian.calibrated(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
        return cls(one.sigma, steps)

    @property
    def touches(self) -> int:
        """Every step."""
        return self.steps

    def prepare(self, value: ArrayLike) -> NDArray[Any]:
        """A stream of 1 to T steps along the first axis."""
        array = super().prepare(value)
        require_stream(array, self.steps)
        return array
