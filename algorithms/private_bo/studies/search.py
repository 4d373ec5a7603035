"""A model of scikit-learn, tuned by scores on private held-out rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Count, Positive, Probability
from dpaudit.base.optional_import import optional_import
from dpaudit.certificate import Claim
from dpaudit.ledger import Ledger
from dpaudit.plan import Plan, TrustModel
from dpaudit.project import AuditPair, Move, RunResult, Subject
from private_bo.studies.study import PrivateStudy, PrivateTrials


@dataclass(frozen=True)
class PrivateSearch(Checked, Subject):
    """Optuna chooses hyperparameters by the noisy accuracy on held-out rows, which are protected.

    The rows before them train, and are public, or else trained on with privacy of their own. Every
    trial is scored on all held-out rows, of which one moves the accuracy by 1/``held_out``, and
    all trials compose. The best trial is the best release. For other models and data extend
    :meth:`space`, :meth:`model`, :meth:`scores` and :meth:`load`.

    Attributes:
        epsilon: ε of one held-out row, over all trials.
        delta: its δ; 0 for Laplace noise.
        trials: how many models are scored.
        held_out: how many rows score, a public number; they are the last ones.

    Raises:
        InputError: if a field is out of its range.
    """

    default_data: ClassVar[str] = "digits"

    epsilon: Positive = 1.0
    delta: Probability = 1e-5
    trials: Count = 20
    held_out: Count = 600

    def space(self, trial: Any) -> Mapping[str, Any]:
        """The hyperparameters, suggested by Optuna's trial."""
        return {
            "C": trial.suggest_float("C", 1e-3, 1e3, log=True),
            "gamma": trial.suggest_float("gamma", 1e-6, 1.0, log=True),
        }

    def model(self, parameters: Mapping[str, Any]) -> Any:
        """A model that is not yet fitted."""
        return optional_import("learn", "sklearn.svm", what="a private search").SVC(**parameters)

    def scores(self, model: Any, x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        """A fitted model's score on each held-out row, in [0, 1]: whether it is right."""
        return np.asarray(model.predict(x) == y, dtype=np.float64)

    @property
    def private(self) -> PrivateTrials:
        """What is released."""
        about = {"unit": "row", "trust": TrustModel.CENTRAL, "units": self.held_out}
        return PrivateTrials(self.epsilon, self.delta, self.trials, **about)  # type: ignore[arg-type]

    def plan(self) -> Plan:
        """One noisy accuracy a trial."""
        return self.private.plan()

    def claim(self) -> Claim:
        """ε and δ over all trials."""
        return Claim(self.epsilon, self.delta, "calibrated over all trials")

    def not_covered(self) -> tuple[str, ...]:
        """What the claim leaves out."""
        return (
            "The rows that train: the search protects held-out rows alone, and the models are not "
            "released.",
            "How many rows there are, and a space of hyperparameters chosen on the same rows.",
        )

    def audit_pairs(self) -> tuple[AuditPair, ...]:
        """Accuracies as far apart as one row moves them."""
        return (
            AuditPair(0.0, 1.0 / self.held_out, "one row that every trial gets right or wrong"),
        )

    def audit_release(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """The releases of all trials, (size, trials), if every accuracy is ``data``."""
        accuracies = np.full(self.trials, float(data))
        return self.private.mechanism.release_many(accuracies, size, rng)

    def load(self, source: str, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
        """Pixels in [0, 1], shape (1797, 64), and digits, in a public random order.

        Raises:
            InputError: if the source is another one.
        """
        if source != self.default_data:
            raise InputError(f"data is {source!r:.80}; it must be digits.")
        datasets = optional_import("learn", "sklearn.datasets", what="a private search")
        x, y = datasets.load_digits(return_X_y=True)
        order = rng.permutation(len(y))
        x, y = x[order] / 16.0, y[order]
        self.model({}).fit(x[:50], y[:50]).predict(
            x[:1]
        )  # reads its plugins' files once, not in a run
        return x, y

    def neighbours(self, data: Any, rng: np.random.Generator) -> Iterator[Move]:
        """One held-out row, with another class or other inputs."""
        x, y = data
        for row in (len(y) - 1, *(len(y) - 1 - rng.integers(self.held_out, size=3))):
            other = y.copy()
            other[row] = y[row - 1] if y[row] != y[row - 1] else y[row] + 1
            yield Move((x, other), f"row {row} has another class")
        far = x.copy()
        far[-1] = 1e6
        yield Move((far, y), f"row {len(y) - 1} has inputs far from all others", extreme=True)

    def run(self, data: Any, ledger: Ledger, rng: np.random.Generator) -> RunResult:
        """Search; each accuracy leaves only through the ledger.

        Args:
            data: inputs (n, d) and classes (n,), of which the last ``held_out`` rows score.
            ledger: a ledger of :meth:`plan`.
            rng: seeds Optuna's sampler.

        Raises:
            InputError: if there are too few rows.
            UnsupportedError: if Optuna or scikit-learn is not installed.
        """
        x, y = (np.asarray(part) for part in data)
        if len(x) != len(y) or len(y) <= self.held_out:
            raise InputError(
                f"data has {len(x)} inputs and {len(y)} classes; it must have as many of both, and "
                f"more than the {self.held_out} that are held out."
            )
        samplers = optional_import("optuna", "optuna.samplers", what="a private search")
        sampler = samplers.TPESampler(seed=int(rng.integers(2**31)))
        study = PrivateStudy(self.private, sampler=sampler, ledger=ledger)
        split = len(y) - self.held_out

        def score(parameters: Mapping[str, Any]) -> NDArray[Any]:
            model = self.model(parameters).fit(x[:split], y[:split])
            return self.scores(model, x[split:], y[split:])

        study.optimize(self.space, score)
        return study.result()
