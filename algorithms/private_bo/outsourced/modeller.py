"""The modeller: GP-UCB on released rows (Kharkovskii, Dai & Low 2020, Algorithm 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Natural, OpenProbability, Positive
from private_bo.gp.types import Array, Indices
from private_bo.outsourced.inputs import InputModel, Inputs
from private_bo.outsourced.likelihood import Hyperparameters, most_likely
from private_bo.outsourced.protocol import Query, Release


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

    Raises:
        InputError: if a parameter is outside its range.

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
                f"initial is {self.initial}; it must be at least 2 where hyperparameters are "
                "learnt."
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
                f"release has {release.size} rows; it must have at least the {self.queries} that "
                "are to be asked for."
            )
        inputs, n = self.inputs.read(release), release.size  # line 1
        belief = _Belief(inputs, self.hyperparameters)
        for row in rng.choice(n, self.initial, replace=False):
            belief.learn(int(row), query(int(row)))
        for t in range(1, self.steps + 1):  # line 2
            beta = 2.0 * math.log(n * t * t * math.pi**2 / (6.0 * self.confidence))  # line 3
            row = belief.most_promising(self.width_multiplier * math.sqrt(beta))  # line 4
            y = query(row)  # line 5
            belief.learn(row, y)  # line 6
        return Search(np.array(belief.rows, dtype=np.intp), np.array(belief.outputs), belief.model)


class _Belief:
    """The posterior of f at every row; hyperparameters that are not given are fitted anew."""

    def __init__(self, inputs: Inputs, given: Hyperparameters | None) -> None:
        self.rows: list[int] = []
        self.outputs: list[float] = []
        self._inputs = inputs
        self._fits = given is None
        self._fit_at = 2
        self._start(Hyperparameters(length_scale=1.0) if given is None else given)

    def _start(self, model: Hyperparameters) -> None:
        """The posterior under these hyperparameters, given all outputs so far."""
        self.model = model
        self._share = self._inputs.share(model.length_scale)
        self._smooth = model.signal_variance * self._share
        self._own = model.signal_variance - self._smooth
        # No row is asked twice, so a row's own part is noise to what the others tell of it.
        noise = (model.noise_variance + self._own) / self._smooth
        self._posterior = self._inputs.posterior(model.length_scale, noise)
        for row, output in zip(self.rows, self.outputs, strict=True):
            self._update(row, output)

    def _update(self, row: int, output: float) -> None:
        self._posterior.update(row, (output - self.model.mean) / math.sqrt(self._smooth))

    def learn(self, row: int, output: float) -> None:
        """Take in the output of a row."""
        value = validate.finite(output=output)
        self.rows.append(row)
        self.outputs.append(value)
        if not self._fits:
            self._update(row, value)

    def most_promising(self, width: float) -> int:
        """Argmax μ̃(z) + width · σ̃(z) over the rows not asked yet, the first of equals."""
        if self._fits and len(self.rows) >= self._fit_at:
            self._fit_at = 2 * len(self.rows)
            self._start(most_likely(self._inputs, self.rows, self.outputs))
        elif self._fits:
            self._update(self.rows[-1], self.outputs[-1])
        scores = self._smooth * self._posterior.variance
        scores += self._own
        np.sqrt(scores, out=scores)
        scores *= width / math.sqrt(self._smooth)
        scores += self._posterior.mean
        scores[self.rows] = -math.inf
        return int(scores.argmax())
