"""The modeller: GP-UCB on released rows (Kharkovskii, Dai & Low 2020, Algorithm 2).

What crosses between curator and modeller comes first: one release of all rows, then outputs that
are asked for. Then how released rows are read, as they are or as noisy inputs; and hyperparameters,
given or by maximum likelihood on what was released.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import (
    Checked,
    Count,
    Finite,
    Natural,
    NonNegative,
    OpenProbability,
    Positive,
)
from private_bo.gp import ARD, FiniteDomain, FinitePosterior, Kernel, SquaredExponential, Storage
from private_bo.gp.types import Array, Indices, array_of

Query = Callable[[int], float]
"""The modeller's only way back to the curator: a row number in, its output out."""


@dataclass(frozen=True, eq=False)
class Release(Checked):
    """What the curator publishes.

    Attributes:
        points: the transformed rows Z (n, r), read-only.
        noise_variance: public variance of the noise in each entry; 0 if none was added.
    """

    points: Annotated[Array, array_of("n", "r")] = field(repr=False)
    noise_variance: NonNegative = 0.0

    @property
    def size(self) -> int:
        """n, the number of rows."""
        return int(self.points.shape[0])


@dataclass(eq=False)
class AnswerDesk(Checked):
    """The curator's side of a query: measures a row once and hands out its output.

    Attributes:
        size: number of rows n.
        measure: measures the output of a row.
        publish: how an output leaves; None for in the clear, outside the privacy claim.
    """

    size: Count
    measure: Query
    publish: Callable[[int, float], float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._asked: set[int] = set()

    def ask(self, row: int) -> float:
        """The output of a row.

        Args:
            row: row number, 0 <= row < n, not asked before.

        Raises:
            InputError: if there is no such row, it has been measured already, or its output is no
                finite number.
        """
        number = validate.integer_at_least(0, self.size - 1, row=row)
        if number in self._asked:
            raise InputError(f"row is {number}, which has been measured; ask for another row.")
        measured, output = self.measure(number), None
        with suppress(InputError):  # whose sentence would show it
            output = validate.finite(output=measured)
        if output is None:
            raise InputError("output is not shown; it must be a finite number.")
        released = output if self.publish is None else self.publish(number, output)
        self._asked.add(number)
        return released


class InputModel(StrEnum):
    """What the modeller makes of the noise that the curator declares."""

    ORDINARY = "ordinary"
    """Nothing: the SE kernel on the released rows, as in the paper."""
    EXPECTED = "expected"
    """The SE kernel averaged over the inputs given the release."""

    def read(self, release: Release) -> Inputs:
        """The released rows under this model."""
        if self is InputModel.ORDINARY or release.noise_variance == 0:
            return Inputs(release.points, np.zeros(release.points.shape[1]))
        return Inputs.given(release)


@dataclass(frozen=True, eq=False)
class Inputs:
    """Inputs known up to independent normal errors, and the SE kernel averaged over them.

    For x_i ~ N(m_i, diag p) independently, E k(x_i, x_j) for i ≠ j is, coordinate by coordinate,
    l/√(l² + 2p) · exp(-(m_i - m_j)²/(2 (l² + 2p))) (the integral of a Gaussian), and it is 1 for
    i = j. So a share s = ∏ l/√(l² + 2p) of f is smooth in the means, and the rest is each row's
    own: f(x_i) = sqrt(s) g(i) + sqrt(1 - s) h_i, with g ~ GP(0, k) and independent unit normals
    h_i. Without errors all of it is smooth.

    Attributes:
        means: m (n, r).
        variances: p (r,); all 0 or none.
    """

    means: Array
    variances: Array

    @classmethod
    def given(cls, release: Release) -> Inputs:
        """The posterior of the inputs under a normal prior of variance var(Z) - σ².

        With prior variance v the mean is shrunk by v/(v + σ²) and p = v σ²/(v + σ²). The prior is
        taken from the release, never from the private rows. Noise that is not normal enters with
        its variance.
        """
        middle = release.points.mean(axis=0)
        noise = release.noise_variance
        prior = np.maximum(release.points.var(axis=0) - noise, 1e-9 * noise)
        shrinkage = prior / (prior + noise)
        return cls((release.points - middle) * shrinkage, shrinkage * noise)

    @property
    def diameter(self) -> float:
        """Diagonal of the smallest box around the means."""
        return float(np.linalg.norm(np.ptp(self.means, axis=0)))

    def kernel(self, length_scale: float) -> Kernel:
        """Unit-variance kernel k of the smooth share, on the means."""
        if not self.variances.any():
            return SquaredExponential(length_scale)
        scales = np.sqrt(length_scale**2 + 2.0 * self.variances)
        return ARD(SquaredExponential(1.0), tuple(scales.tolist()))

    def share(self, length_scale: float) -> float:
        """The share s of the smooth part, in (0, 1]."""
        return float(np.prod(length_scale / np.sqrt(length_scale**2 + 2.0 * self.variances)))


_LENGTHS = 16
_NOISE_RATIOS = (1e-4, 1e-3, 1e-2, 1e-1, 0.3, 1.0, 3.0)


@dataclass(frozen=True)
class Hyperparameters(Checked):
    """Of y = f(x) + noise with f ~ GP(mean, signal_variance · SE(length_scale)).

    Attributes:
        length_scale: l > 0, in the units of the released rows.
        mean: of f.
        signal_variance: σ_y² > 0.
        noise_variance: σ_n² > 0 of an output.
    """

    length_scale: Positive
    mean: Finite = 0.0
    signal_variance: Positive = 1.0
    noise_variance: Positive = 1e-5


def most_likely(inputs: Inputs, rows: Sequence[int], outputs: Sequence[float]) -> Hyperparameters:
    """The hyperparameters of largest marginal likelihood given the outputs of some rows.

    Length scale and noise-to-signal ratio are searched on a grid that is public but for the
    diameter of the release; mean and signal variance have closed forms (generalised least squares).

    Args:
        inputs: the released rows.
        rows: at least 2 distinct row numbers.
        outputs: what was returned for them.
    """
    y = np.asarray(outputs, dtype=np.float64)
    diameter = inputs.diameter or 1.0
    best, chosen = -math.inf, Hyperparameters(diameter)
    for length in diameter * np.geomspace(1 / 50, 2.0, _LENGTHS):
        gram = _correlation(inputs, list(rows), float(length))
        for ratio in _NOISE_RATIOS:
            value, mean, signal = _profile(gram, y, ratio)
            if value > best:
                best = value
                chosen = Hyperparameters(float(length), mean, signal, ratio * signal)
    return chosen


def _correlation(inputs: Inputs, rows: list[int], length: float) -> Array:
    """Prior correlation of f at distinct rows."""
    points = inputs.means[rows]
    gram = inputs.share(length) * inputs.kernel(length)(points, points)
    gram.flat[:: len(rows) + 1] = 1.0
    return np.asarray(gram)


def _profile(gram: Array, y: Array, ratio: float) -> tuple[float, float, float]:
    """Log-likelihood (up to a constant), mean and signal variance that maximise it."""
    factor = np.linalg.cholesky(gram + ratio * np.eye(y.size))
    whitened = np.linalg.solve(factor, np.column_stack([y, np.ones(y.size)]))
    mean = float(whitened[:, 1] @ whitened[:, 0] / (whitened[:, 1] @ whitened[:, 1]))
    residual = whitened[:, 0] - mean * whitened[:, 1]
    signal = max(float(residual @ residual) / y.size, 1e-12)
    log_determinant = 2.0 * float(np.log(factor.diagonal()).sum())
    return -0.5 * (y.size * math.log(signal) + log_determinant), mean, signal


class Belief:
    """The posterior of f at every row, under given hyperparameters and the outputs so far.

    Attributes:
        rows: row numbers, in the order in which their outputs came.
        outputs: of these rows.
        posterior: of the smooth part, in units of its prior deviation.

    Args:
        inputs: the released rows.
        model: the hyperparameters.
    """

    def __init__(self, inputs: Inputs, model: Hyperparameters) -> None:
        self.rows: list[int] = []
        self.outputs: list[float] = []
        self.model = model
        self._inputs = inputs
        self._smooth = model.signal_variance * inputs.share(model.length_scale)
        self._own = model.signal_variance - self._smooth
        # No row is asked twice, so a row's own part is noise to what the others tell of it.
        noise = (model.noise_variance + self._own) / self._smooth
        domain, kernel = FiniteDomain(inputs.means), inputs.kernel(model.length_scale)
        self.posterior = FinitePosterior.of(domain, kernel, noise, Storage.ROWS)

    def learn(self, row: int, output: float) -> None:
        """Take in the output of a row."""
        value = validate.finite(output=output)
        self.rows.append(row)
        self.outputs.append(value)
        self.posterior.update(row, (value - self.model.mean) / math.sqrt(self._smooth))

    def refitted(self) -> Belief:
        """What follows from the same outputs under the likeliest hyperparameters."""
        other = Belief(self._inputs, most_likely(self._inputs, self.rows, self.outputs))
        for row, output in zip(self.rows, self.outputs, strict=True):
            other.learn(row, output)
        return other

    def scores(self, width: float) -> Array:
        """μ̃(z) + width · σ̃(z) of every row, but for a scale and a constant."""
        scores = self._smooth * self.posterior.variance
        scores += self._own
        np.sqrt(scores, out=scores)
        scores *= width / math.sqrt(self._smooth)
        scores += self.posterior.mean
        return scores


@dataclass(frozen=True, eq=False)
class Search:
    """What a modeller has done, in the order of its queries.

    Attributes:
        rows: row numbers asked for, initial ones first.
        outputs: what was returned for them.
        hyperparameters: those of the last round.
    """

    rows: Indices
    outputs: Array = field(repr=False)
    hyperparameters: Hyperparameters

    @property
    def best(self) -> int:
        """The row of largest returned output."""
        return int(self.rows[self.outputs.argmax()])


@dataclass(frozen=True)
class Modeller(Checked):
    """GP-UCB on a release. It sees the release, the row numbers it asks for, and their outputs.

    The score of a row is its posterior mean + width_multiplier · sqrt(β_t) · standard deviation,
    with β_t = 2 ln(n t² π²/(6 δ')). Every row is asked at most once: its output is then known.

    Attributes:
        hyperparameters: of the GP, public; None for maximum likelihood on the release and the
            returned outputs, again whenever their number has doubled.
        steps: T, rounds of GP-UCB.
        initial: rows drawn at random before them.
        confidence: δ' in (0, 1), of the regret bound (not a privacy parameter).
        width_multiplier: 1 for the theory's width.
        inputs: what is made of the declared noise.

    >>> release = Release(np.linspace(0.0, 3.0, 50)[:, np.newaxis])
    >>> modeller = Modeller(Hyperparameters(length_scale=1.0), steps=10, initial=2)
    >>> search = modeller.run(release, lambda row: math.sin(row / 10), np.random.default_rng(0))
    >>> 14 <= search.best <= 17
    True
    """

    hyperparameters: Hyperparameters | None = field(
        default_factory=lambda: Hyperparameters(length_scale=5.0)
    )
    steps: Natural = 50
    initial: Natural = 10
    confidence: OpenProbability = 0.025
    width_multiplier: Positive = 1.0
    inputs: InputModel = InputModel.EXPECTED

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hyperparameters is None and self.initial < 2:
            raise InputError(
                f"initial is {self.initial}; it must be at least 2 to learn hyperparameters."
            )

    @property
    def queries(self) -> int:
        """How many rows are asked for in all."""
        return self.initial + self.steps

    def run(self, release: Release, query: Query, rng: np.random.Generator) -> Search:
        """Look for the row of largest output.

        Args:
            release: what the curator published.
            query: returns the output of a row.
            rng: draws the initial rows; it has no privacy role.

        Raises:
            InputError: if there are fewer rows than queries, or an output is not finite.
        """
        if release.size < self.queries:
            raise InputError(
                f"release has {release.size} rows; it must have at least as many rows as there "
                f"are queries, {self.queries}."
            )
        inputs, n = self.inputs.read(release), release.size  # line 1
        belief = Belief(inputs, self.hyperparameters or Hyperparameters(length_scale=1.0))
        for row in rng.choice(n, self.initial, replace=False):
            belief.learn(int(row), query(int(row)))
        fit_at = math.inf if self.hyperparameters else 2
        for t in range(1, self.steps + 1):  # line 2
            if len(belief.rows) >= fit_at:
                belief, fit_at = belief.refitted(), 2 * len(belief.rows)
            beta = 2.0 * math.log(n * t * t * math.pi**2 / (6.0 * self.confidence))  # line 3
            scores = belief.scores(self.width_multiplier * math.sqrt(beta))
            scores[belief.rows] = -math.inf
            row = int(scores.argmax())  # line 4, the first of equals
            belief.learn(row, query(row))  # lines 5-6
        return Search(np.array(belief.rows, dtype=np.intp), np.array(belief.outputs), belief.model)
