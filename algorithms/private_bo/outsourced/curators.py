"""The curators of outsourced optimisation (Kharkovskii, Dai & Low 2020), one of them with a proof.

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
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Count, Natural, OpenProbability, Positive, Probability, at_least
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Claim, Finding
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import Gaussian, Laplace, Mechanism, Opaque
from dpaudit.plan import Invocation, MetricBall, PrivacyUnit, TrustModel
from dpaudit.project import AuditPair, Move, RunResult
from private_bo.base import Study
from private_bo.gp.types import Array
from private_bo.outsourced.modeller import (
    AnswerDesk,
    Hyperparameters,
    InputModel,
    Modeller,
    Query,
    Release,
    Search,
)
from private_bo.outsourced.problems import (
    OutsourcedProblem,
    centred,
    check_rows,
    inflate_singular_values,
    largest_l1_gain,
    largest_l2_gain,
    load_problem,
    public_projection,
    require_memory,
    small_pairs,
)

RELEASE, OUTPUT = "release", "output"
_FINDINGS = FindingTable(__name__)
_EPSILON = math.exp(1.1)  # of the paper's synthetic experiment


@dataclass(frozen=True)
class OutsourcingCurator(Study):
    """The owner of n private rows who publishes a transformed copy and then answers queries.

    Neighbours differ in one row, by at most 1 in Euclidean norm (Definition 1 of the paper).

    Attributes:
        epsilon: ε > 0 of the release.
        delta: δ in [0, 1) of the release.
        dimension: r >= 1, columns of the release.
        columns: d >= 1, columns of the private rows.
        norm_bound: public bound of the norm of a row; longer rows are refused.
        queries: how many rows may be asked for, 10 at random and the rest by GP-UCB.
        output_epsilon: ε of each released output, or None to hand outputs out in the clear, which
            is outside the claim.
        output_bound: magnitude to which an output is clipped before noise is added.
    """

    default_data: ClassVar[str] = "grid"

    trust: ClassVar[TrustModel] = TrustModel.CURATOR
    unit: ClassVar[PrivacyUnit] = PrivacyUnit("row")
    problem: ClassVar[type[OutsourcedProblem]] = OutsourcedProblem

    public_scale: ClassVar[bool]
    """Whether :meth:`load` scales recorded rows by public constants or by their own statistics."""

    width_multiplier: ClassVar[float] = 1.0
    """Of the modeller in a run: 1 for the theory's width."""

    epsilon: Positive = _EPSILON
    delta: Probability = 1e-5
    dimension: Count = 10
    columns: Count = 2
    norm_bound: Positive = 25.0
    queries: Count = 60
    output_epsilon: Positive | None = None
    output_bound: Positive = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_memory(self.columns, self.dimension)

    # -- privacy ---------------------------------------------------------------------------------

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """What the rows pass before they are published."""

    @property
    @abstractmethod
    def sensitivity(self) -> float:
        """Largest distance of the mechanism's values on neighbours."""

    @property
    def noise_variance(self) -> float:
        """Public variance of the noise in each released entry."""
        return 0.0

    @property
    def output_mechanism(self) -> Laplace | None:
        """What an output passes before the modeller sees it; None if it is handed out as it is."""
        if self.output_epsilon is None:
            return None
        bound = self.output_bound
        return Laplace.calibrated(
            epsilon=self.output_epsilon, sensitivity=2.0 * bound, clip=(-bound, bound)
        )

    @property
    def relation(self) -> MetricBall:
        """One row that moves by at most 1."""
        return MetricBall(1.0)

    def invocations(self) -> Iterator[Invocation]:
        """The release of all rows and, if declared, that of each output asked for.

        A row that moves may change its output in any way, so an output costs its whole range.
        """
        yield self.invocation(self.mechanism, self.sensitivity, at=RELEASE)
        if (outputs := self.output_mechanism) is not None:
            width = 2.0 * self.output_bound
            yield self.invocation(outputs, width, total=self.queries, at=OUTPUT)

    def claim(self) -> Claim:
        """(ε, δ) of the release, and the ε of one output where outputs are released privately."""
        return Claim(self.epsilon + (self.output_epsilon or 0.0), self.delta, self.source)

    def findings(self) -> tuple[Finding, ...]:
        """Outputs in the clear, if they are."""
        if self.output_epsilon is not None:
            return ()
        return (_FINDINGS("outside-the-claim", OUTPUT),)

    def not_covered(self) -> tuple[str, ...]:
        """What the claim leaves out."""
        return (
            "The number of rows and their order are public.",
            "A row that moves by more than 1 is protected less, in proportion.",
            "The modeller must not learn that a check of the private rows failed.",
            "The regret comes from the true outputs; a run shows it to the data's owner alone.",
        )

    # -- protocol --------------------------------------------------------------------------------

    def checked(self, rows: Any) -> Array:
        """The private rows (n, d), if they may be released; nothing is drawn before.

        Raises:
            InputError: as :func:`~private_bo.outsourced.problems.check_rows`, or if it would
                not fit into memory.
        """
        matrix = check_rows(rows, columns=self.columns, norm_bound=self.norm_bound)
        require_memory(len(matrix), self.dimension)
        return matrix

    def publish(self, rows: Any, ledger: Ledger) -> Release:
        """Check the private rows X (n, d) and release them through a ledger of :meth:`plan`.

        Raises:
            InputError: if a check fails; nothing has been released then.
        """
        value = self.value(self.checked(rows))
        released = ledger.release(self.mechanism, value, at=RELEASE)
        return Release(np.asarray(released), self.noise_variance)

    def value(self, rows: Array) -> Array:
        """What the mechanism is given of checked rows."""
        return rows

    def desk(self, size: int, measure: Query, ledger: Ledger) -> AnswerDesk:
        """The counter at which a modeller asks for outputs.

        Args:
            size: number of rows.
            measure: measures the output of a row.
            ledger: charged for each output, if outputs are released privately.
        """
        outputs = self.output_mechanism
        if outputs is None:
            return AnswerDesk(size, measure)

        def through(row: int, output: float) -> float:
            released = ledger.release(outputs, output, unit=f"row {row}", at=OUTPUT)
            return float(np.asarray(released))

        return AnswerDesk(size, measure, through)

    # -- run -------------------------------------------------------------------------------------

    def load(self, source: str, rng: np.random.Generator) -> OutsourcedProblem:
        """Private rows and their outputs, by name or path."""
        return load_problem(source, rng, public_scale=self.public_scale)

    def neighbours(self, data: OutsourcedProblem, rng: np.random.Generator) -> Iterator[Move]:
        """One row moved by 1; where outputs are released privately, with another output as well.

        Outputs in the clear are outside the claim, and stay as they are.
        """
        middle = int(np.square(data.rows).sum(axis=1).argmin())
        one, two = (int(row) for row in rng.integers(data.size, size=2))
        random = rng.standard_normal(self.columns)
        diagonal = np.ones(self.columns)
        outwards = data.rows[one] if np.any(data.rows[one]) else diagonal
        tries = (
            (middle, diagonal, "the row nearest to the middle moved along a diagonal", False),
            (middle, np.eye(self.columns)[0], "the row nearest to the middle moved", False),
            (one, -outwards, f"row {one} moved inwards", False),
            (two, random, f"row {two} moved at random", True),
            (one, outwards, f"row {one} moved outwards", True),
        )
        values = self.output_bound * np.array([1.0, -1.0, 1e3, -1e3, 0.0])
        for (row, way, recipe, extreme), output in zip(tries, values.tolist(), strict=True):
            moved, f = data.rows.copy(), data.f.copy()
            moved[row] += (1 - 1e-12) * way / np.linalg.norm(way)
            if self.output_epsilon is not None:
                f[row] = output
            yield Move(replace(data, rows=moved, f=f), recipe, extreme)

    def check_data(self, data: Any) -> OutsourcedProblem:
        """The data, if they are such a problem, with enough rows."""
        problem: OutsourcedProblem = super().check_data(data)
        if self.queries > problem.size:
            raise InputError(
                f"queries is {self.queries}; it must be at most the {problem.size} rows of the "
                "data."
            )
        return problem

    def search(
        self, problem: OutsourcedProblem, ledger: Ledger, rng: np.random.Generator
    ) -> tuple[Release, Search]:
        """Publish the rows, unless a check fails, and let a modeller look for the largest output.

        The generator draws initial rows and the noise of measurements.
        """
        release = self.publish(problem.rows, ledger)
        desk = self.desk(release.size, lambda row: problem.measure(row, rng), ledger)
        return release, self.modeller(problem.hyperparameters).run(release, desk.ask, rng)

    def result(self, problem: OutsourcedProblem, found: tuple[Release, Search]) -> RunResult:
        """The best row by what was told; and for the owner the simple regret."""
        release, search = found
        regret = problem.regret(search.rows)
        summary = {
            "algorithm": type(self).__name__,
            "problem": problem.name,
            "rows": problem.size,
            "queries": int(search.rows.size),
            "released columns": int(release.points.shape[1]),
            "noise variance of a released entry": self.noise_variance,
            "length scale": search.hyperparameters.length_scale,
            "best row": search.best,
        }
        owner = RunResult({"simple regret": float(regret[-1])}, {"simple regret": regret.tolist()})
        return RunResult(summary=summary, owner=owner)

    def modeller(self, hyperparameters: Hyperparameters | None) -> Modeller:
        """The modeller of a run: it knows the public fields of this curator.

        Args:
            hyperparameters: public, or None for maximum likelihood on what is released.
        """
        initial = min(10, self.queries)
        if hyperparameters is not None and (outputs := self.output_mechanism) is not None:
            noise = hyperparameters.noise_variance + 2.0 * outputs.scale**2
            hyperparameters = replace(hyperparameters, noise_variance=noise)
        return Modeller(
            hyperparameters,
            steps=self.queries - initial,
            initial=initial,
            width_multiplier=self.width_multiplier,
            inputs=InputModel.EXPECTED,
        )

    # -- audit -----------------------------------------------------------------------------------

    def audit_pairs(self) -> tuple[AuditPair, ...]:
        """A row that moves by 1 at the centre, and one at the rim, of a few rows around it."""
        return small_pairs(self.columns, self.norm_bound)

    def audit_release(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """``size`` independent releases of the rows, shape (size, n, r).

        Raises:
            InputError: if a check of the rows fails.
        """
        return np.stack(list(self.releases(data, size, rng)))

    def modelled(self) -> Iterator[tuple[Array, OutsourcedProblem]]:
        """The rows of the first pair, with as many in their middle as there are queries."""
        pair = self.audit_pairs()[0]
        for side in (pair.x, pair.x_prime):
            rows = np.array(side)
            middle = np.tile(rows.mean(axis=0), (max(0, self.queries - len(rows)), 1))
            rows = np.concatenate([rows, middle])
            known = Hyperparameters(length_scale=1.0)
            yield rows, OutsourcedProblem("small", rows, np.zeros(len(rows)), 0.0, known)

    def releases(self, rows: Any, size: int, rng: np.random.Generator) -> Iterator[Array]:
        """The same, one (n, r) at a time, so that no more than one is in memory."""
        draw = self.sampler(self.checked(rows))
        return (draw(rng) for _ in range(size))

    @abstractmethod
    def sampler(self, rows: Array) -> Callable[[np.random.Generator], Array]:
        """What draws releases (n, r) of checked rows; all that needs no draw is computed once."""


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
        X = inflate_singular_values(X, self.omega)  # lines 4-6 and 8-9
        d, r = X.shape[1], self.dimension
        # Lines 3, 7 and 10; line 12 publishes it.
        return lambda rng: X @ (rng.standard_normal((d, r)) / math.sqrt(r))

    def findings(self) -> tuple[Finding, ...]:
        """The two leaks of the algorithm, the scaling of the inputs, and outputs in the clear."""
        rules = ("disjoint-supports", "data-dependent-branch", "data-dependent-scale")
        return (*(_FINDINGS(rule, RELEASE) for rule in rules), *super().findings())


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

    def obstacles(self) -> tuple[Finding, ...]:
        """Why a modeller learns nothing, whatever the rows are; from public numbers alone.

        Rows that are anywhere in the ball of the norm bound R deviate by R/√(d + 2) in each column,
        and outputs anywhere within their bound B by B/√3.
        """
        reasons = []
        gain = float(np.square(self.projection).sum(axis=0).mean())
        spread = self.norm_bound * math.sqrt(gain / (self.columns + 2))
        noise = math.sqrt(self.noise_variance)
        if noise >= spread:
            reasons.append(
                f"the noise of entries of the release deviates by {noise:.3g}, and rows drawn "
                f"uniformly within the norm bound only by {spread:.3g}, so that no row can be "
                "told from others"
            )
        if (outputs := self.output_mechanism) is not None:
            spread = self.output_bound / math.sqrt(3.0)
            noise = outputs.scale * math.sqrt(2.0 / self.queries)
            if noise >= spread:
                reasons.append(
                    f"even if all {self.queries} outputs were of equal rows, their mean would be "
                    f"known only up to {noise:.3g}, and outputs drawn uniformly within their "
                    f"bound deviate by {spread:.3g}"
                )
        return (_FINDINGS("cannot-learn", reasons=", and ".join(reasons)),) if reasons else ()

    def findings(self) -> tuple[Finding, ...]:
        """Outputs in the clear, and settings of which nothing can be learnt."""
        return (*super().findings(), *self.obstacles())

    def checked(self, rows: Any) -> Array:
        """As the base class, and of the declared number of rows."""
        matrix = check_rows(rows, columns=self.columns, norm_bound=self.norm_bound, count=self.rows)
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
