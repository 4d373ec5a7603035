"""A classifier with ``fit`` and ``predict`` whose every look at the data is in its plan.

Its steps are those of :class:`~dpaudit.training.Trainer`. Means of inputs, sizes of classes, and
scores on held-out rows, which are private too, go through the same ledger, as bounded queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn
from torch.func import functional_call

from dpaudit.base import validate
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.fields import Checked, Count, Interval, OpenProbability, Positive, Rate
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Certificate
from dpaudit.ledger import FloatNoise, Ledger, NoiseBackend, SecureNoise
from dpaudit.mechanisms import Gaussian
from dpaudit.plan import AddRemove, Contribution, Invocation, Plan, PrivacyUnit, TrustModel
from dpaudit.training.gradients.draws import drawn_by, secret_seed
from dpaudit.training.gradients.trainer import Trainer

_found = FindingTable(__name__)
Floats = NDArray[np.float64]
_NORM = 2**0.5
"""Of what a row adds to the statistics: moments of length 1 at most, and its class."""


@dataclass(frozen=True)
class Privacy(Checked):
    """The bounds of what a classifier may learn. It knows no data, and cannot be changed.

    Attributes:
        noise_multiplier: of gradients, in clip norms.
        sample_rate: at which a row is in a step.
        epochs: passes of ⌊1/sample_rate⌋ steps, at most.
        rows: about how many rows there are: a public guess, that sums are divided by.
        bounds: of all inputs, which are clipped to them.
        max_grad_norm: the clip norm.
        statistics: noise multiplier of the means and variances of inputs and the sizes of classes,
            by which inputs are normalised and classes weighed; None for neither.
        scores: noise multiplier of the number of right answers on held-out rows, once a pass, by
            which a model is kept and the training stopped; None for neither.
        held_out: the probability of a row to be held out for the scores.
        patience: passes without a better score after which the training stops.
        classes: of the labels; where not given those that occur, which leaves a fit unproven.
        delta: of the guarantee.
    """

    noise_multiplier: Positive = 1.0
    sample_rate: Rate = 0.05
    epochs: Count = 10
    rows: Count = 1000
    bounds: Interval = (-1.0, 1.0)
    max_grad_norm: Positive = 1.0
    statistics: Positive | None = None
    scores: Positive | None = None
    held_out: OpenProbability = 0.1
    patience: Count = 3
    classes: tuple[Any, ...] | None = None
    delta: OpenProbability = 1e-5

    def plan(self) -> Plan:
        """Return all that is ever released: statistics, gradients and scores.

        >>> [each.at for each in Privacy(statistics=5.0, scores=5.0).plan().invocations]
        ['gradient', 'statistics', 'scores']
        """
        uses = list(
            Plan.dp_sgd(
                noise_multiplier=self.noise_multiplier,
                max_grad_norm=self.max_grad_norm,
                sample_rate=self.sample_rate,
                epochs=self.epochs,
                unit="row",
            ).invocations
        )
        about = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
        for at, noise, norm, count in (
            ("statistics", self.statistics, _NORM, 1),
            ("scores", self.scores, 1.0, self.epochs),
        ):
            if noise is not None:
                added = Contribution(norm)
                sigma = Gaussian(noise * norm)
                uses.append(Invocation.bounded(sigma, added, *about, count=count, at=at))
        return Plan.of(*uses)


class PrivateClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A network of one hidden layer, trained by DP-SGD through a ledger.

    Noise is exact; a model of more than 16 384 parameters gets floats from the system's entropy,
    as a finding of the certificate says.

    Args:
        privacy: what it may learn; ``Privacy()`` where not given.
        hidden: units of the hidden layer; 0 for a linear model.
        learning_rate: of SGD.
        random_state: for experiments that anyone can repeat; noise of the system where None.

    Attributes:
        classes_: labels, in the order of :meth:`predict_proba`.
        certificate_: of the fit, which another fit is charged beside.
        scores_: the noisy scores, one a pass.

    >>> PrivateClassifier(Privacy(epochs=2)).privacy.plan().invocations[0].count
    40
    """

    def __init__(
        self,
        privacy: Privacy | None = None,
        hidden: int = 32,
        learning_rate: float = 0.5,
        random_state: Any = None,
    ) -> None:
        self.privacy, self.hidden = privacy, hidden
        self.learning_rate, self.random_state = learning_rate, random_state

    def __sklearn_tags__(self) -> Any:
        """Noise costs accuracy."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        tags.non_deterministic = self.random_state is None
        return tags

    def fit(self, X: Any, y: Any) -> PrivateClassifier:
        """Train on X (n, features) and labels y (n,), and certify what was done.

        Raises:
            InputError: if a label is none of the public classes, or privacy is no ``Privacy``.
        """
        privacy = Privacy() if self.privacy is None else self.privacy
        if not isinstance(privacy, Privacy):
            raise InputError(f"privacy is {privacy!r:.60}; it must be a Privacy.")
        validate.integer_at_least(0, hidden=self.hidden)
        validate.positive(learning_rate=self.learning_rate)
        X, y = validate_data(self, X, y)
        check_classification_targets(y)
        self.classes_ = np.unique(y if privacy.classes is None else np.asarray(privacy.classes))
        if not np.isin(y, self.classes_).all():
            raise InputError(
                "y has a label that is not a public class; name all classes in "
                "Privacy(classes=...)."
            )
        if len(self.classes_) < 2:
            raise InputError("y has only one class; a classifier needs two.")
        draws = check_random_state(self.random_state)
        seeds = [None] * 3 if self.random_state is None else draws.randint(2**31, size=3).tolist()
        model = self._network(seeds[0])
        noise = _noise(privacy.plan(), sum(each.numel() for each in model.parameters()), seeds[1])
        coins = np.random.default_rng(seeds[2])
        with Ledger(privacy.plan(), noise=noise) as ledger:
            self._train(privacy, X, np.searchsorted(self.classes_, y), ledger, model, coins)
        return self

    def _train(
        self, privacy: Privacy, X: Any, y: Any, ledger: Ledger, model: Any, coins: Any
    ) -> None:
        x = _between(X, privacy.bounds)
        self._mean, self._scale, weighed = _statistics(privacy, x, y, len(self.classes_), ledger)
        held = coins.random(len(y)) < privacy.held_out
        kept = ~held if privacy.scores is not None else np.ones(len(y), dtype=bool)
        if not kept.any():
            raise InputError("X has too few rows to hold some out; give scores=None or more rows.")
        inputs, weights = self._normal(x), torch.tensor(weighed, dtype=torch.float32)

        def loss(parameters: Any, example: Any) -> Any:
            row, label = example
            logits = functional_call(model, parameters, (row,))
            return nn.functional.cross_entropy(logits, label, weights, reduction="sum")

        divisor = privacy.sample_rate * privacy.rows
        trainer = Trainer(loss, model, (inputs[kept], y[kept]), ledger, divisor=divisor)
        optimizer = torch.optim.SGD(model.parameters(), lr=self.learning_rate)
        self.scores_: list[float] = []
        best = None
        for _ in range(privacy.epochs):
            for _ in islice(trainer, len(trainer) // privacy.epochs):
                optimizer.step()
            if privacy.scores is None:
                continue
            with torch.no_grad():
                right = model(inputs[held]).argmax(1).numpy() == y[held]
            self.scores_.append(float(ledger.count(int(right.sum()), at="scores")))
            if int(np.argmax(self.scores_)) == len(self.scores_) - 1:
                best = {name: value.clone() for name, value in model.state_dict().items()}
            elif len(self.scores_) - int(np.argmax(self.scores_)) > privacy.patience:
                ledger.close()
                break
        model.load_state_dict(best or model.state_dict())
        model.zero_grad()
        self.model_ = model.requires_grad_(requires_grad=False).eval()
        self.certificate_: Certificate = trainer.certificate(
            privacy.delta,
            name="private classifier",
            findings=[] if privacy.classes else [_found("classes-from-data")],
        )

    def _network(self, seed: int | None) -> Any:
        width, classes = self.n_features_in_, len(self.classes_)
        with drawn_by(secret_seed() if seed is None else seed, torch.device("cpu")):
            layers = [nn.Linear(width, self.hidden), nn.Tanh()] if self.hidden else []
            return nn.Sequential(*layers, nn.Linear(self.hidden or width, classes))

    def _normal(self, x: Floats) -> Any:
        return torch.tensor((x - self._mean) / self._scale, dtype=torch.float32)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, shape (n, classes)."""
        check_is_fitted(self, "model_")
        X = validate_data(self, X, reset=False)
        privacy = Privacy() if self.privacy is None else self.privacy
        logits = self.model_(self._normal(_between(X, privacy.bounds))).double()
        return np.asarray(torch.softmax(logits, 1).numpy())

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest label of each row, shape (n,)."""
        likely = self.predict_proba(X).argmax(1)
        return np.asarray(self.classes_[likely])


def _noise(plan: Plan, size: int, seed: int | None) -> NoiseBackend:
    """That of a seed; else exact noise, if it can be drawn for gradients of that size."""
    if seed is not None:
        return FloatNoise(np.random.default_rng(seed))
    exact = SecureNoise()
    try:
        exact.require_size(plan.invocations[0], size)
    except UnsupportedError:
        return FloatNoise()
    return exact


def _between(X: Any, bounds: tuple[float, float]) -> Floats:
    """Scale inputs to within −1 and 1."""
    low, high = bounds
    x: Floats = (2 * np.clip(X, low, high) - low - high) / (high - low)
    return x


def _statistics(
    privacy: Privacy, x: Any, y: Any, classes: int, ledger: Ledger
) -> tuple[Floats, Floats, Floats]:
    """Release moments and sizes of classes in one sum, of rows no longer than √2."""
    width = x.shape[1]
    if privacy.statistics is None:
        return np.zeros(width), np.ones(width), np.ones(classes)
    rows = np.hstack([np.hstack([x, x**2]) / (2 * width) ** 0.5, np.eye(classes)[y]])
    total = np.asarray(ledger.sum(rows, at="statistics"), dtype=np.float64)
    sizes = np.maximum(total[2 * width :], 1.0)
    moments = total[: 2 * width] * (2 * width) ** 0.5 / sizes.sum()
    mean = np.clip(moments[:width], -1, 1)
    spread = np.sqrt(np.clip(moments[width:] - mean**2, 0.01, 1))
    weights = np.clip(sizes.sum() / (classes * sizes), 0.1, 10)
    return mean, spread, weights
