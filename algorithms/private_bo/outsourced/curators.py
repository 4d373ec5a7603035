"""Outsourced Bayesian optimisation (Kharkovskii, Dai & Low 2020), and a curator that is private.

A curator owns private rows, a modeller optimises. The curator publishes a transformed copy of all
rows once; the modeller runs GP-UCB on it, asks for rows by number and is told their outputs.

:class:`Curator` is the paper's, to the letter. Its privacy theorem is false whenever there are more
rows than columns: ``reports/outsourced.md`` explains why, and ``audits/outsourced`` shows it.
:class:`CertifiedCurator` has the same interface and a proof.

>>> from dpaudit.ledger import Ledger
>>> curator = CertifiedCurator(epsilon=1.0, queries=12)
>>> rng = np.random.default_rng(0)
>>> problem = curator.load("taipei", rng)
>>> with Ledger(curator.plan(), rng=rng) as ledger:
...     result = curator.run(problem, ledger, rng)
>>> len(ledger), result.summary["rows"], result.summary["queries"]
(1, 414, 12)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, ClassVar

import numpy as np

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Natural, OpenProbability, at_least
from dpaudit.certificate import Finding, Severity
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import Gaussian, Laplace, Opaque
from private_bo.gp.types import Array
from private_bo.outsourced.problems import OutsourcedProblem
from private_bo.outsourced.protocol import Release
from private_bo.outsourced.rows import (
    centred,
    checked_rows,
    inflated,
    largest_l1_gain,
    largest_l2_gain,
    public_projection,
    require_memory,
)
from private_bo.outsourced.subject import RELEASE, OutsourcingCurator

_ROUNDING = 1 + 1e-9  # so that an accountant that rounds ε up still proves the claim


@dataclass(frozen=True)
class Curator(OutsourcingCurator):
    """PO-GP-UCB's curator, Algorithm 1: a random projection with a secret M, and no noise.

    Fields as in the base class. The (ε, δ) of Theorem 1 is declared as a claim without a proof.

    >>> round(Curator(dimension=10).omega, 1), round(Curator(dimension=15).omega, 1)
    (976.1, 1224.7)
    """

    public_scale: ClassVar[bool] = False
    source: ClassVar[str] = "Kharkovskii, Dai & Low 2020, Theorem 1"

    delta: OpenProbability = 1e-5

    @property
    def omega(self) -> float:
        """ω = 16 sqrt(r ln(2/δ)) ln(16 r/δ)/ε (line 5), the least singular value that is left."""
        r, delta = self.dimension, self.delta
        return (
            16.0 * math.sqrt(r * math.log(2.0 / delta)) * math.log(16.0 * r / delta) / self.epsilon
        )

    @property
    def mechanism(self) -> Opaque:
        """Algorithm 1 as a claim that no accountant can check."""
        label = "PO-GP-UCB random projection"
        return Opaque(label, self.epsilon, self.delta, self._sample, self.checked)

    @property
    def sensitivity(self) -> float:
        """1: the claim speaks of the whole data set."""
        return 1.0

    def _sample(self, rows: Array, rng: np.random.Generator) -> Array:
        return self.sampler(rows)(rng)

    def sampler(self, rows: Array) -> Callable[[np.random.Generator], Array]:
        """Algorithm 1; M is the only thing drawn."""
        X = centred(rows)  # line 2
        X = inflated(X, self.omega)  # lines 4-6 and 8-9
        d, r = X.shape[1], self.dimension
        return lambda rng: X @ (rng.standard_normal((d, r)) / math.sqrt(r))  # lines 3, 7 and 10

    def publish(self, rows: Any, ledger: Ledger) -> Release:
        """Release Z = X̃ M/√r (line 12)."""
        released = ledger.release(self.mechanism, rows, at=RELEASE)
        return Release(np.asarray(released))

    def findings(self) -> tuple[Finding, ...]:
        """The two leaks of the algorithm, the scaling of the inputs, and outputs in the clear."""
        return (
            Finding(
                "disjoint-supports",
                Severity.ERROR,
                "All columns of the release lie in the column space of the centred rows, which "
                "moves when one row moves: with more rows than columns, neighbours have releases "
                "of disjoint supports, and no ε at any δ below 1 holds.",
                "Use CertifiedCurator, which adds noise to every entry.",
                RELEASE,
            ),
            Finding(
                "data-dependent-branch",
                Severity.ERROR,
                "Whether singular values are inflated depends on σ_min of the private rows; at "
                "σ_min = ω the scale of the release jumps by up to √2 between neighbours.",
                "Decide on the branch from public facts.",
                RELEASE,
            ),
            Finding(
                "data-dependent-scale",
                Severity.WARNING,
                "The paper centres the rows and scales them to a largest norm of 25; both are "
                "statistics of the private rows, and neighbours are defined after the scaling.",
                "Scale by public constants.",
                RELEASE,
            ),
            *super().findings(),
        )


class RowNoise(StrEnum):
    """Which noise a certified curator adds to every entry."""

    LEAST = "least"
    """The one of the two below that needs less variance for (ε, δ)."""
    GAUSSIAN = "gaussian"
    """Calibrated exactly to (ε, δ) in Euclidean distance (Balle & Wang 2018)."""
    LAPLACE = "laplace"
    """Calibrated to ε, with δ = 0, in L1 distance."""


@dataclass(frozen=True)
class CertifiedCurator(OutsourcingCurator):
    """Releases X P + noise, with a public P: the interface of :class:`Curator`, and a proof.

    P is M/√r for r < d, with M drawn from ``public_seed`` independently of the data (Kenthapadi et
    al. 2013), and the identity for r >= d. One row that moves by 1 moves the release by

    - at most σ_max(P) · sqrt(1 - 1/n) in Euclidean norm, after centring: the centring matrix has
      diagonal 1 - 1/n. By symmetry and convexity no Gaussian noise that is correlated between rows
      has a smaller variance of differences. Without a declared n the factor is 1.
    - at most max over unit vectors u of ‖uᵀP‖₁ in L1 norm (√d for the identity), *without*
      centring, which would spread the move over all rows and nearly double it. A modeller may
      centre for free.

    Laplace noise has per-entry variance 2d/ε² for r >= d, whatever n and δ. The Gaussian's is
    larger at small d: 13.9 against 4 at d = 2, ε = 1, δ = 1e-5. Laplace noise proves δ = 0 as well.

    Attributes:
        public_seed: of M; known to everybody.
        noise: which noise to add.
        rows: n, if it is to be declared; a data set of another size is refused.

    Raises:
        InputError: if a field is outside its range, or δ is 0 for Gaussian noise.

    >>> round(CertifiedCurator(epsilon=1.0).noise_variance, 2)
    4.0
    >>> round(CertifiedCurator(epsilon=1.0, noise=RowNoise.GAUSSIAN).noise_variance, 2)
    13.92
    """

    public_scale: ClassVar[bool] = True
    source: ClassVar[str] = "calibrated for it"
    # The theory's width explores for longer than 50 rounds allow where inputs are noisy; a public
    # constant, see the tables in reports/outsourced.md.
    width_multiplier: ClassVar[float] = 0.7

    public_seed: Natural = 0
    noise: RowNoise = RowNoise.LEAST
    rows: Annotated[int, at_least(2)] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise is RowNoise.GAUSSIAN and self.delta == 0:
            raise InputError("delta is 0.0; it must be above 0 for Gaussian noise.")

    @property
    def projection(self) -> Array:
        """P (d, min(r, d)), public."""
        return public_projection(self.columns, self.dimension, self.public_seed)

    @property
    def mechanism(self) -> Gaussian | Laplace:
        """The noise, at its least scale for (ε, δ)."""
        candidates: dict[float, Gaussian | Laplace] = {}
        if self.noise is not RowNoise.GAUSSIAN:
            laplace = Laplace.calibrated(
                epsilon=self.epsilon, sensitivity=largest_l1_gain(self.projection)
            )
            candidates[2.0 * laplace.scale**2] = laplace
        if self.noise is not RowNoise.LAPLACE and self.delta > 0:
            exact = Gaussian.calibrated(
                epsilon=self.epsilon, delta=self.delta, sensitivity=self._l2_sensitivity
            )
            gaussian = Gaussian(exact.sigma * _ROUNDING)
            candidates[gaussian.sigma**2] = gaussian
        return candidates[min(candidates)]

    @property
    def _l2_sensitivity(self) -> float:
        centring = 1.0 if self.rows is None else math.sqrt(1.0 - 1.0 / self.rows)
        return largest_l2_gain(self.projection) * centring

    @property
    def sensitivity(self) -> float:
        """Largest distance that one row's move by 1 makes, in the norm of the mechanism."""
        if isinstance(self.mechanism, Gaussian):
            return self._l2_sensitivity
        return largest_l1_gain(self.projection)

    @property
    def noise_variance(self) -> float:
        """σ², or 2b² for Laplace noise of scale b."""
        noise = self.mechanism
        return noise.sigma**2 if isinstance(noise, Gaussian) else 2.0 * noise.scale**2

    def checked(self, rows: Any) -> Array:
        """As the base class, and of the declared number of rows."""
        matrix = checked_rows(
            rows, columns=self.columns, norm_bound=self.norm_bound, count=self.rows
        )
        require_memory(len(matrix), min(self.dimension, self.columns))
        return matrix

    def value(self, rows: Array) -> Array:
        """What noise is added to, (n, min(r, d)): centred for Gaussian noise alone."""
        projected = rows @ self.projection
        return centred(projected) if isinstance(self.mechanism, Gaussian) else projected

    def modelled(self) -> Iterator[tuple[Array, OutsourcedProblem]]:
        """As in the base class; none where the number of rows is declared."""
        return super().modelled() if self.rows is None else iter(())

    def sampler(self, rows: Array) -> Callable[[np.random.Generator], Array]:
        """X P + noise, with noise drawn anew each time."""
        mechanism, value = self.mechanism, self.value(rows)
        return lambda rng: np.asarray(mechanism.release(value, rng))

    def publish(self, rows: Any, ledger: Ledger) -> Release:
        """Release X P + noise."""
        value = self.value(self.checked(rows))
        released = ledger.release(self.mechanism, value, at=RELEASE)
        return Release(np.asarray(released), self.noise_variance)
