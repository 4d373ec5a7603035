"""Federated tuning of hyperparameters on real data: landmine fields, and writers of digits."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dpaudit.base import validate
from dpaudit.base.errors import InputError
from private_bo.federated.problems.base import EvaluatedObjective, FederatedProblem, unit_grid
from private_bo.gp.types import Array, Indices, read_only
from private_bo.problems.files import data_file

_FEWEST = 6  # images of a writer: at least three to learn from and three to be judged by
# Public ranges: C and γ of the support vector machine, as in the paper's experiment.
_C, _GAMMA = (1e-4, 10.0), (0.01, 10.0)
# Public ranges of the digits, all on logarithmic scales.
_PENALTY, _STEP, _EPOCHS = (1e-6, 1.0), (1e-3, 1.0), (1, 32)


@dataclass(frozen=True, eq=False)
class Split:
    """An agent's private data, in two parts.

    Attributes:
        inputs: to learn from, (n, features).
        labels: of them, (n,).
        held_inputs: to be judged by, (m, features).
        held_labels: of them, (m,).
    """

    inputs: Array = field(repr=False)
    labels: Indices = field(repr=False)
    held_inputs: Array = field(repr=False)
    held_labels: Indices = field(repr=False)


class _Tuning(EvaluatedObjective):
    """A score of a model as a function of its hyperparameters."""

    def __init__(self, domain: Array, split: Split) -> None:
        super().__init__()
        self._domain = domain
        self._split = split

    @property
    def size(self) -> int:
        """G, the number of points."""
        return len(self._domain)


class _LandmineField(_Tuning):
    """Area under the ROC curve of a support vector machine with C and γ."""

    def evaluate(self, index: int) -> float:
        """On the field's held-out half."""
        from sklearn import config_context
        from sklearn.svm import SVC

        split = self._split
        penalty, gamma = self._domain[index]
        machine = SVC(C=_between(*_C, penalty), gamma=_between(*_GAMMA, gamma))
        # Checks of data that were checked when they were read take as long as a fit.
        with config_context(assume_finite=True, skip_parameter_validation=True):
            machine.fit(split.inputs, split.labels)
            # The order of the decision function is all that the area depends on.
            score = machine.decision_function(split.held_inputs)
        return area_under_roc(score, split.held_labels)


def area_under_roc(scores: Array, positive: Indices) -> float:
    """Probability that a positive has a larger score than a negative, equal scores counting half.

    >>> area_under_roc(np.array([0.1, 0.4, 0.4, 0.8]), np.array([0, 0, 1, 1]))
    0.875
    """
    from scipy.stats import rankdata

    chosen = positive == 1
    hits, others = int(chosen.sum()), int((~chosen).sum())
    above = float(rankdata(scores)[chosen].sum()) - hits * (hits + 1) / 2
    return above / (hits * others)


class _Writer(_Tuning):
    """Accuracy of a logistic regression with L2 penalty, step size and number of epochs."""

    def evaluate(self, index: int) -> float:
        """On the writer's held-out half."""
        from sklearn.linear_model import SGDClassifier

        split = self._split
        penalty, step, epochs = self._domain[index]
        model = SGDClassifier(
            loss="log_loss",
            alpha=_between_logs(*_PENALTY, penalty),
            learning_rate="constant",
            eta0=_between_logs(*_STEP, step),
            max_iter=round(_between_logs(*_EPOCHS, epochs)),
            tol=None,
            random_state=0,
        )
        model.fit(split.inputs, split.labels)
        return float(np.mean(model.predict(split.held_inputs) == split.held_labels))


def _between(low: float, high: float, share: float) -> float:
    return low + float(share) * (high - low)


def _between_logs(low: float, high: float, share: float) -> float:
    return math.exp(_between(math.log(low), math.log(high), share))


def landmines(
    path: str | Path | None = None, *, per_axis: int = 20, seed: int = 0
) -> FederatedProblem:
    """Tune a support vector machine on each of 29 landmine fields (Xue et al. 2007).

    The objective is the area under the ROC curve on the held-out half of a field, as a function of
    C = 10⁻⁴ + u₁ (10 - 10⁻⁴) and γ = 0.01 + u₂ (10 - 0.01). Halves are stratified by label. A
    value takes a few milliseconds, and is computed when first asked for.

    Args:
        path: ``LandmineData.mat``; by default ``landmine/LandmineData.mat`` in the directory named
            by the environment variable ``DPAUDIT_DATA``.
        per_axis: the grid has per_axis² points.
        seed: of the halves.

    Raises:
        InputError: if the file is missing or is not that data set, or an argument is out of range.
    """
    from sklearn.model_selection import train_test_split

    domain = unit_grid(per_axis, dimensions=2)
    seed = validate.integer_at_least(0, seed=seed)
    file = data_file(path, "landmine/LandmineData.mat")
    fields = []
    for inputs, labels in _landmine_fields(file):
        halves = train_test_split(inputs, labels, test_size=0.5, stratify=labels, random_state=seed)
        inputs, held_inputs, labels, held_labels = halves
        fields.append(_LandmineField(domain, Split(inputs, labels, held_inputs, held_labels)))
    return FederatedProblem("landmines", domain, tuple(fields))


def _landmine_fields(file: Path) -> list[tuple[Array, Indices]]:
    """Inputs (n, 9) and labels 0 or 1 (n,) of every field."""
    from scipy.io import loadmat

    wrong = InputError(
        f"path is {str(file)!r}, which has no cells 'feature' and 'label' of equal lengths with "
        "labels 0 and 1; it must be the landmine file LandmineData.mat."
    )
    try:
        data = loadmat(file)
        cells = zip(np.ravel(data["feature"]), np.ravel(data["label"]), strict=True)
        fields = [
            (np.asarray(inputs, dtype=np.float64), np.ravel(labels).astype(np.intp))
            for inputs, labels in cells
        ]
    except Exception as cause:
        raise wrong from cause
    if not fields or not all(_is_field(inputs, labels) for inputs, labels in fields):
        raise wrong
    return fields


def _is_field(inputs: Array, labels: Indices) -> bool:
    """Whether there are two examples of either label, so that halves can have one of each."""
    if inputs.ndim != 2 or inputs.shape[1] == 0 or inputs.shape[0] != labels.size:
        return False
    known = np.isin(labels, (0, 1)).all() and np.isfinite(inputs).all()
    return bool(known and np.bincount(labels, minlength=2).min() >= 2)


def digits(
    agents: int = 30, *, concentration: float = 1.0, per_axis: int = 8, seed: int = 0
) -> FederatedProblem:
    """Tune a classifier of handwritten digits for agents that write different digits.

    The 1797 images that ship with scikit-learn are dealt out: agent n has a mix of the ten digits
    drawn from a Dirichlet distribution, and gets of each digit a share in proportion. The objective
    is the accuracy of a logistic regression, learned by stochastic gradients on one half of the
    agent's images, on the other half. It is a function of the L2 penalty (10⁻⁶ to 1), the step
    size (10⁻³ to 1) and the number of epochs (1 to 32), all on logarithmic scales.

    Args:
        agents: N >= 2.
        concentration: of the Dirichlet distribution; the smaller, the more the agents differ.
        per_axis: the grid has per_axis³ points.
        seed: of mixes, images and halves.

    Raises:
        InputError: if an argument is out of range, or leaves an agent fewer than 6 images or only
            one digit to learn from.

    >>> digits(agents=5).dimension
    3
    """
    from sklearn.datasets import load_digits

    count = validate.integer_at_least(2, agents=agents)
    spread = validate.positive(concentration=concentration)
    domain = unit_grid(per_axis, dimensions=3)
    rng = np.random.default_rng(validate.integer_at_least(0, seed=seed))
    images, labels = load_digits(return_X_y=True)
    images = read_only(images / 16.0)  # grey levels 0 to 16
    mixes = rng.dirichlet(np.full(10, spread), size=count)
    writers = []
    for agent, own in enumerate(_rows_by_agent(labels, mixes, rng)):
        own = rng.permutation(own)
        learn, held = own[: len(own) // 2], own[len(own) // 2 :]
        if len(own) < _FEWEST or len(np.unique(labels[learn])) < 2:
            raise InputError(
                f"agents is {agents} and concentration {concentration}, which leave agent {agent} "
                f"{len(own)} images; there must be {_FEWEST} of two digits for everyone, so give "
                "fewer agents or a larger concentration."
            )
        split = Split(images[learn], labels[learn], images[held], labels[held])
        writers.append(_Writer(domain, split))
    return FederatedProblem("digits", domain, tuple(writers))


def _rows_by_agent(labels: Indices, mixes: Array, rng: np.random.Generator) -> list[Indices]:
    """Rows of each agent: of every digit a share in proportion to its weight in the mixes."""
    dealt: list[list[Indices]] = [[] for _ in mixes]
    for digit, weights in enumerate(mixes.T):
        rows = rng.permutation(np.flatnonzero(labels == digit))
        total = weights.sum()
        shares = weights / total if total > 0 else np.full(len(weights), 1 / len(weights))
        cuts = np.rint(np.cumsum(shares)[:-1] * len(rows)).astype(np.intp)
        for own, part in zip(dealt, np.split(rows, cuts), strict=True):
            own.append(part)
    return [np.concatenate(own) for own in dealt]
