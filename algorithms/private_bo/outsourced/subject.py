"""What both curators share: public fields, the plan, and the protocol with a modeller."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Count, Positive, Probability
from dpaudit.certificate import Claim, Finding, Severity
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import Laplace, Mechanism
from dpaudit.plan import Invocation, MetricBall, Plan, PrivacyUnit, TrustModel
from dpaudit.project import AuditPair, Move, RunResult, Subject
from private_bo.gp.types import Array
from private_bo.outsourced.inputs import InputModel
from private_bo.outsourced.likelihood import Hyperparameters
from private_bo.outsourced.modeller import Modeller
from private_bo.outsourced.pairs import small_pairs
from private_bo.outsourced.problems import OutsourcedProblem, load_problem
from private_bo.outsourced.protocol import AnswerDesk, Query, Release
from private_bo.outsourced.rows import checked_rows, require_memory

RELEASE, OUTPUT = "release", "output"
_UNIT = PrivacyUnit("row")
_EPSILON = math.exp(1.1)  # of the paper's synthetic experiment


@dataclass(frozen=True)
class OutsourcingCurator(Checked, Subject):
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

    Raises:
        InputError: if a field is outside its range.
    """

    default_data: ClassVar[str] = "grid"

    public_scale: ClassVar[bool]
    """Whether :meth:`load` scales recorded rows by public constants or by their own statistics."""

    source: ClassVar[str]
    """Where the claim is stated."""

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

    def plan(self) -> Plan:
        """The release of all rows and, if declared, that of each output asked for.

        A row that moves may change its output in any way, so an output costs its whole range.
        """
        place: dict[str, Any] = {
            "unit": _UNIT,
            "relation": MetricBall(1.0),
            "trust": TrustModel.CURATOR,
        }
        invocations = [Invocation(self.mechanism, self.sensitivity, at=RELEASE, **place)]
        if (outputs := self.output_mechanism) is not None:
            width = 2.0 * self.output_bound
            invocations.append(Invocation(outputs, width, total=self.queries, at=OUTPUT, **place))
        return Plan.of(*invocations)

    def claim(self) -> Claim:
        """(ε, δ) of the release, and the ε of one output where outputs are released privately."""
        return Claim(self.epsilon + (self.output_epsilon or 0.0), self.delta, self.source)

    def findings(self) -> tuple[Finding, ...]:
        """Outputs in the clear, if they are."""
        if self.output_epsilon is not None:
            return ()
        return (
            Finding(
                "outside-the-claim",
                Severity.WARNING,
                "The outputs y of the rows that the modeller asks for are handed out in the clear; "
                "they depend on the private rows, and the guarantee does not count them.",
                "Set output_epsilon, or establish that outputs are public.",
                OUTPUT,
            ),
        )

    def not_covered(self) -> tuple[str, ...]:
        """What the claim leaves out."""
        return (
            "The number of rows and their order are public.",
            "A row that moves by more than 1 is protected less, in proportion.",
            "That a check of the private rows failed must not be told to the modeller.",
            "The regret comes from the true outputs; a run shows it to the data's owner alone.",
        )

    # -- protocol --------------------------------------------------------------------------------

    def checked(self, rows: Any) -> Array:
        """The private rows (n, d), if they may be released; nothing is drawn before.

        Raises:
            InputError: as :func:`private_bo.outsourced.rows.checked_rows`, or if the release would
                not fit into memory.
        """
        matrix = checked_rows(rows, columns=self.columns, norm_bound=self.norm_bound)
        require_memory(len(matrix), self.dimension)
        return matrix

    @abstractmethod
    def publish(self, rows: Any, ledger: Ledger) -> Release:
        """Check the private rows and release them through the ledger.

        Args:
            rows: X (n, d).
            ledger: a ledger of :meth:`plan`.

        Raises:
            InputError: if a check fails; nothing has been released then.
        """

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
        """Private rows and their outputs, by name or path.

        Raises:
            InputError: if there are none of that name, or a file is missing or malformed.
        """
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

    def run(self, data: OutsourcedProblem, ledger: Ledger, rng: np.random.Generator) -> RunResult:
        """Publish the rows and let a modeller look for the largest output.

        Args:
            data: private rows and their outputs.
            ledger: a ledger of :meth:`plan`.
            rng: initial rows and measurement noise.

        Raises:
            InputError: if a check of the rows fails; nothing has been released then.
        """
        if not isinstance(data, OutsourcedProblem):
            raise InputError(f"data is a {type(data).__name__}; it must be an OutsourcedProblem.")
        if self.queries > data.size:
            raise InputError(
                f"queries is {self.queries}; it must be at most the {data.size} rows of the data."
            )
        release = self.publish(data.rows, ledger)
        desk = self.desk(release.size, lambda row: data.measure(row, rng), ledger)
        search = self.modeller(data.hyperparameters).run(release, desk.ask, rng)
        regret = data.regret(search.rows)
        summary = {
            "algorithm": type(self).__name__,
            "problem": data.name,
            "rows": data.size,
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

    def statistic(self, releases: Sequence[Any]) -> NDArray[Any]:
        """The rows that are published."""
        return np.asarray(releases[0])

    def releases(self, rows: Any, size: int, rng: np.random.Generator) -> Iterator[Array]:
        """The same, one (n, r) at a time, so that no more than one is in memory."""
        draw = self.sampler(self.checked(rows))
        return (draw(rng) for _ in range(size))

    @abstractmethod
    def sampler(self, rows: Array) -> Callable[[np.random.Generator], Array]:
        """What draws releases (n, r) of checked rows; all that needs no draw is computed once."""
