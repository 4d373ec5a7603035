"""Searches by Optuna whose objective is private: it sees what a ledger released, and no more.

:class:`PrivateStudy` puts any study behind a ledger's door; :class:`PrivateSearch` tunes a model of
scikit-learn by scores on private rows. Both need the extra ``optuna``, which is imported when a
study is made.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.accounting import guarantee, least_noise
from dpaudit.base import validate
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.base.fields import Checked, Count, Interval, Name, Positive, Probability
from dpaudit.base.optional_import import optional_import
from dpaudit.certificate import Certificate, Claim, SubjectRecord, certify
from dpaudit.ledger import Ledger
from dpaudit.mechanisms import Gaussian, Laplace, Mechanism
from dpaudit.plan import (
    Invocation,
    Plan,
    PrivacyUnit,
    PrivateSelection,
    ReplaceOne,
    Runs,
    TrustModel,
)
from dpaudit.project import AuditPair, Move, RunResult
from private_bo.base import Study, load_named
from private_bo.problems.sources import shuffled_digits
from private_bo.redacted_errors import redact

_AT, _SCORE = "objective", "score"
_SECRET = (
    "How many runs there were, and whether some failed: the time of the search may show it, and "
    "so may anything that the objective keeps, writes or counts."
)
_ATTRIBUTE = "dpaudit certificate"


@dataclass(frozen=True)
class PrivateTrials(Checked):
    """What a study releases: one noisy mean a trial, of values in a public range.

    Each of ``units`` people (or rows) has a value in every trial, clipped to the range; replacing
    one of them moves the mean by a ``units``-th of the range at most. With δ = 0 the noise is
    Laplace's, of which each trial costs its share of ε; else it is Gaussian, the least for (ε, δ)
    over all trials. Locally each trial has one value of somebody new, who alone pays for it.

    With a law of ``runs`` the trials are candidates: each of a secret number of runs scores one of
    them, drawn at random, and of all runs the best one's candidate and score are released (Liu and
    Talwar 2019). Such a search costs what a few releases cost, however many runs it makes.

    Attributes:
        epsilon: ε of one unit, over all trials.
        delta: its δ.
        trials: how many at most; how many candidates, if ``runs`` is given.
        bounds: the public range (lower, upper) of one unit's value.
        units: how many, a public number.
        unit: what one is, such as user or row.
        trust: ``local`` for one value of somebody new in each trial; ``central`` or ``joint`` where
            whoever evaluates a trial sees all values.
        runs: the law of a secret number of runs, to release the best alone; every trial is released
            where it is None.

    Raises:
        InputError: if a field is out of its range, several units are local, or nobody sees the
            values of several runs.
    """

    epsilon: Positive = 1.0
    delta: Probability = 0.0
    trials: Count = 20
    bounds: Interval = (0.0, 1.0)
    units: Count = 1
    unit: Name = "user"
    trust: TrustModel = TrustModel.LOCAL
    runs: Runs | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.trust is TrustModel.LOCAL and self.runs is not None:
            raise InputError(
                "runs is given and trust is local; whoever keeps the best run sees all of them, so "
                "trust must be central or joint."
            )
        if self.trust is TrustModel.LOCAL and self.units > 1:
            raise InputError(
                f"units is {self.units}; a local trial has one value, so units must be 1, or "
                "trust must be central or joint."
            )

    @property
    def count(self) -> int:
        """In how many trials a unit has a value."""
        return 1 if self.trust is TrustModel.LOCAL or self.runs is not None else self.trials

    @property
    def sensitivity(self) -> float:
        """How far one unit moves a mean; with some more for the rounding of the mean."""
        width = math.nextafter(self.bounds[1] - self.bounds[0], math.inf)
        more = max(2.0**-30, self.units * 2.0**-50)
        return width if self.units == 1 else width / self.units * (1.0 + more)

    @cached_property
    def mechanism(self) -> Laplace | Gaussian:
        """The noise of one trial.

        Raises:
            UnsupportedError: if no noise is enough for these runs.
        """
        if self.runs is not None:
            return self._of_a_run(self.runs)
        slack = 1.0 + (self.count > 1) * 2.0**-40  # of rounding, in a sum or a root
        if self.delta == 0.0:
            share = self.epsilon / self.count / slack
            return Laplace.calibrated(epsilon=share, sensitivity=self.sensitivity)
        whole = self.sensitivity * math.sqrt(self.count) * slack
        return Gaussian.calibrated(epsilon=self.epsilon, delta=self.delta, sensitivity=whole)

    def _of_a_run(self, runs: Runs) -> Laplace | Gaussian:
        noise: Callable[[float], Laplace | Gaussian] = Gaussian if self.delta else Laplace

        def meets(scale: float) -> bool:
            plan = self._selection(noise(scale), runs)
            return guarantee(plan, self.delta).epsilon <= self.epsilon

        scale = least_noise(meets, tolerance=1e-3)
        if scale is None:
            raise UnsupportedError(
                f"epsilon is {self.epsilon:g}; no noise of these runs keeps it; give a larger ε."
            )
        return noise(scale)

    def _selection(self, mechanism: Mechanism, runs: Runs) -> Plan:
        about = (PrivacyUnit(self.unit), ReplaceOne(), self.trust)
        run = Plan.of(Invocation(mechanism, self.sensitivity, *about, at=_SCORE))
        return Plan.of(Invocation(PrivateSelection(run, runs), 1.0, *about, at=_AT))

    def plan(self) -> Plan:
        """One invocation: as often as there are trials, or of the best run."""
        if self.runs is not None:
            return self._selection(self.mechanism, self.runs)
        about = (PrivacyUnit(self.unit), ReplaceOne(), self.trust)
        total = self.trials if self.count == 1 else None
        each = Invocation(
            self.mechanism, self.sensitivity, *about, count=self.count, total=total, at=_AT
        )
        return Plan.of(each)

    def mean(self, values: ArrayLike, units: Sequence[str] | None = None) -> float:
        """The mean over units of their values, clipped: of several of one unit first their mean.

        Args:
            values: one number for each unit, or for each row of a unit.
            units: whose each value is; by default each has one.

        Raises:
            InputError: if a value is not a finite number, or there are not ``units`` units.
        """
        return self.bounds[0] + self.above(values, units)

    def above(self, values: ArrayLike, units: Sequence[str] | None = None) -> float:
        """How far the mean lies above the lower bound: what noise is added to.

        It is computed from values above that bound, so that it is rounded as their range is, and
        not as bounds are that lie far from 0. Arguments and errors are those of :meth:`mean`.
        """
        low, high = self.bounds
        own = np.clip(np.atleast_1d(validate.private(values)).astype(float), low, high) - low
        names = range(own.size) if units is None else _listed(units)
        if len(names) != own.size:
            raise InputError(
                f"units has {len(names)} names for {own.size} values; give equally many."
            )
        of = np.array(names, dtype=np.intp)
        if own.ndim != 1 or of.max(initial=-1) + 1 != self.units:
            raise InputError(f"values must be those of {self.units} units, one number a row.")
        means = np.minimum(np.bincount(of, own) / np.bincount(of), high - low)
        return math.fsum(means) / self.units


def _listed(units: Any) -> list[int]:
    """Whose each value is, by numbers in order of first sight; no words of a name are told."""
    found: list[int] = []
    if isinstance(units, Iterable) and not isinstance(units, str | bytes):
        with suppress(Exception):
            places: dict[Any, int] = {}
            found = [places.setdefault(name, len(places)) for name in units]
    if not found:
        raise InputError(
            f"units is a {type(units).__name__}; it must be a list with a name for each value. If "
            "each trial asks one person, trust must be local."
        )
    return found


def _told(found: Any) -> tuple[Any, ...]:
    """What an objective gave: values, or a pair of them and whose they are."""
    told = found if isinstance(found, tuple) else (found,)
    if len(told) not in {1, 2}:
        raise InputError(f"objective returned {len(told)} things; return values, or a pair.")
    return told


class PrivateStudy:
    """A study that Optuna runs on releases: sampler, storage and best trial are post-processing.

    The space is a function of Optuna's trial, and the objective one of the parameters that came of
    it, so that nothing private reaches Optuna otherwise than through the ledger: no intermediate
    value, no attribute, and no error that Optuna would log.

    Attributes:
        private: what is released.
        study: Optuna's own; do not tell it anything directly.
        ledger: of :meth:`PrivateTrials.plan`.
    """

    def __init__(
        self,
        private: PrivateTrials,
        *,
        direction: str = "maximize",
        sampler: Any = None,
        ledger: Ledger | None = None,
        journal: Path | str | None = None,
        **settings: Any,
    ) -> None:
        """Make the study.

        Args:
            private: what is released.
            direction: ``maximize`` or ``minimize``.
            sampler: any of Optuna's; TPE where none is given.
            ledger: an open one of the plan; a new one where none is given.
            journal: file of the new one.
            settings: as for ``optuna.create_study``.

        Raises:
            InputError: if the direction is another, or a stored study has values that the ledger
                did not release.
            UnsupportedError: if Optuna is not installed (extra ``optuna``).
        """
        self._optuna = optional_import("optuna", "optuna", what="a private study")
        self.private = validate.instance(PrivateTrials, private=private)
        if direction not in ("maximize", "minimize"):
            raise InputError(f"direction is {direction!r:.80}; it must be maximize or minimize.")
        if "directions" in settings:
            raise InputError("directions is given; give direction, as a trial has one value.")
        own = Ledger(private.plan(), journal=journal) if ledger is None else ledger
        self.ledger = validate.instance(Ledger, ledger=own)
        self.study = self._made(direction=direction, sampler=sampler, **settings)
        self._require_own_trials()

    def _made(self, **settings: Any) -> Any:
        """A study of Optuna with one direction; without the line that tells its random name."""
        optuna = self._optuna
        loud = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        try:
            return optuna.create_study(**settings)
        finally:
            optuna.logging.set_verbosity(loud)

    def _require_own_trials(self) -> None:
        """Refuse a stored study with values that other ledgers released."""
        known = sum(each.values is not None for each in self.study.trials)
        if known > len(self.ledger):
            raise InputError(
                f"the study has {known} values and its ledger made {len(self.ledger)} releases; "
                "give it a name of its own, or the ledger that made them."
            )

    def optimize(
        self,
        space: Callable[[Any], Mapping[str, Any]],
        objective: Callable[[Mapping[str, Any]], ArrayLike | tuple[ArrayLike, Any]],
    ) -> None:
        """Run all trials that are left; with ``runs``, a secret number of runs of the candidates.

        A run that fails then has lost, and the search goes on: which runs fail is as private as
        their values. Only where all fail is one sentence told.

        Args:
            space: suggests parameters with Optuna's trial, of public facts alone.
            objective: the private values of parameters; or a pair of them and whose they are, as
                for :meth:`tell`.

        Raises:
            InputError: as :meth:`tell`; or if the objective raises anything, as to prune a trial:
                its words may hold private values, and are not told.
            PlanMismatchError: as :meth:`tell`.
            UnsupportedError: as :attr:`PrivateTrials.mechanism`.
        """
        for name, given in (("space", space), ("objective", objective)):
            if not callable(given):
                raise InputError(f"{name} is a {type(given).__name__}; it must be a function.")
        if self.private.runs is not None:
            self._select(space, objective)
            return
        while len(self.study.trials) < self.private.trials:
            trial = self.study.ask()
            try:
                self.tell(trial, *_told(redact(objective)(space(trial))))
            except BaseException:
                self.study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
                raise

    def _select(self, space: Callable[[Any], Mapping[str, Any]], objective: Any) -> None:
        """Score candidates in secret, and tell Optuna the best; the others are pruned.

        Candidates are drawn in a study that nobody keeps, and all trials are added after the last
        run, so that no date of a trial shows how long the runs took.
        """
        states, create = self._optuna.trial.TrialState, self._optuna.trial.create_trial
        scratch = self._made(direction=self.study.direction, sampler=self.study.sampler)
        trials = [scratch.ask() for _ in range(self.private.trials)]
        candidates = [space(trial) for trial in trials]
        sign = 1.0 if self.study.direction is self._optuna.study.StudyDirection.MAXIMIZE else -1.0

        def run(place: int, ledger: Ledger) -> tuple[float, None]:
            found = redact(objective)(dict(candidates[place]))
            above = self.private.above(*_told(found))
            return sign * float(ledger.release(self.private.mechanism, above, at=_SCORE)), None

        best = self.ledger.select(run, range(len(trials)), at=_AT)
        for place, trial in enumerate(trials):
            about = {"params": trial.params, "distributions": trial.distributions}
            if best is not None and place == best.candidate:
                value = self.private.bounds[0] + sign * best.score
                self.study.add_trial(create(state=states.COMPLETE, value=value, **about))
            else:
                self.study.add_trial(create(state=states.PRUNED, **about))

    def tell(self, trial: Any, values: ArrayLike, units: Any = None) -> float:
        """Release the mean of private values, and tell Optuna the release.

        Args:
            trial: of ``study.ask()``.
            values: of one unit where trust is local, else of all units.
            units: the name of that unit; else whose each value is, by default each somebody's.

        Raises:
            InputError: as :meth:`PrivateTrials.mean`; if a local value has no name, or only the
                best of several runs is released.
            PlanMismatchError: if all trials are made, or that unit had its own.
        """
        if self.private.runs is not None:
            raise InputError("runs is given, so only the best run is released; call optimize.")
        if local := self.private.trust is TrustModel.LOCAL:
            units = validate.text(units=units)
        kind = self._optuna.trial.Trial
        if not isinstance(trial, kind) or trial.study is not self.study:
            raise InputError(f"trial is a {type(trial).__name__}; it must come from study.ask().")
        if self.study.get_trials(deepcopy=False)[trial.number].state.is_finished():
            raise InputError(f"trial {trial.number} has been told already; ask for another.")
        above = self.private.above(values, None if local else units)
        released = self.ledger.release(
            self.private.mechanism, above, unit=units if local else None, at=_AT
        )
        value = self.private.bounds[0] + float(released)
        self.study.tell(trial, value)
        return value

    def result(self) -> RunResult:
        """The best trial by releases, and all of them."""
        values = [each.value for each in self.study.trials if each.value is not None]
        best = {} if not values else self.study.best_params
        return RunResult({"trials": len(values), "best": best}, {"released": values})

    def certificate(self, delta: float | None = None) -> Certificate:
        """Certify the plan with this study's results; it is an attribute of the study as well.

        Args:
            delta: δ of the guarantee; that of the trials where not given.

        Raises:
            InputError: if the ledger's noise can be repeated, or its plan has more than the trials.
        """
        if self.ledger.plan != self.private.plan():
            raise InputError("ledger has another plan than the trials; certify that plan instead.")
        if self.ledger.seeded:
            raise InputError("ledger is seeded, so that its noise can be repeated; leave it out.")
        self.ledger.close()
        claim = Claim(self.private.epsilon, self.private.delta, "the settings of the study")
        certificate = certify(
            self.private.plan(),
            subject=SubjectRecord("Optuna study"),
            claim=claim,
            delta=delta,
            not_covered=(
                "How many units there are, which parameters are tried, and that a trial failed.",
                "A search space that was chosen by looking at the same data.",
                "Whatever the objective does with the values beside returning them.",
                *((_SECRET,) if self.private.runs is not None else ()),
            ),
        ).with_run(self.result().to_dict(), None)
        self.study.set_user_attr(_ATTRIBUTE, json.loads(json.dumps(certificate.to_dict())))
        return certificate


@dataclass(frozen=True)
class PrivateSearch(Study):
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
        runs: as of :class:`PrivateTrials`; trials are candidates then.
    """

    default_data: ClassVar[str] = "digits"
    trust: ClassVar[TrustModel] = TrustModel.CENTRAL
    unit: ClassVar[PrivacyUnit] = PrivacyUnit("row")
    source: ClassVar[str] = "calibrated over all trials"

    epsilon: Positive = 1.0
    delta: Probability = 1e-5
    trials: Count = 20
    held_out: Count = 600
    runs: Runs | None = None

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
        return PrivateTrials(
            self.epsilon,
            self.delta,
            self.trials,
            unit=self.unit.name,
            trust=self.trust,
            units=self.held_out,
            runs=self.runs,
        )

    def invocations(self) -> Iterable[Invocation]:
        """One noisy accuracy a trial, or that of the best run."""
        return self.private.plan().invocations

    def not_covered(self) -> tuple[str, ...]:
        """What the claim leaves out."""
        return (
            "The rows that train: the search protects held-out rows alone, and the models are not "
            "released.",
            "How many rows there are, and a space of hyperparameters chosen on the same rows.",
            *((_SECRET,) if self.runs is not None else ()),
        )

    def audit_pairs(self) -> tuple[AuditPair, ...]:
        """Accuracies as far apart as one row moves them."""
        return (
            AuditPair(0.0, 1.0 / self.held_out, "one row that every trial gets right or wrong"),
        )

    def audit_release(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """The releases if every accuracy is ``data``: (size, trials), or (size,) of best runs."""
        if self.runs is not None:
            return self._best_of_runs(float(data), size, rng)
        accuracies = np.full(self.trials, float(data))
        return self.private.mechanism.release_many(accuracies, size, rng)

    def _best_of_runs(self, accuracy: float, size: int, rng: np.random.Generator) -> NDArray[Any]:
        (selection,) = (each.mechanism for each in self.plan().invocations)
        numbers = [np.size(selection.sample(np.array([1]), rng)) for _ in range(size)]
        noise = self.private.mechanism
        scores = noise.release_many(np.array([accuracy]), sum(numbers), rng).ravel()
        runs = np.split(scores, np.cumsum(numbers)[:-1])
        return np.array([each.max(initial=-math.inf) for each in runs])

    def load(self, source: str, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
        """Pixels in [0, 1], shape (1797, 64), and digits, in a public random order."""
        return load_named(source, {"digits": lambda: self._digits(rng)})

    def _digits(self, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
        x, y = shuffled_digits(rng)
        once = self.model({}).fit(x[:50], y[:50])
        once.predict(x[:1])  # reads its plugins' files once, not in a run
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

    def check_data(self, data: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Inputs (n, d) and classes (n,), if more rows than ``held_out`` have both."""
        x, y = (np.asarray(part) for part in data)
        if len(x) != len(y) or len(y) <= self.held_out:
            raise InputError(
                f"data has {len(x)} inputs and {len(y)} classes; it must have equally many of "
                f"both, and more than the {self.held_out} that are held out."
            )
        return x, y

    def search(self, problem: Any, ledger: Ledger, rng: np.random.Generator) -> PrivateStudy:
        """Score the last ``held_out`` rows in every trial; the generator seeds Optuna's sampler."""
        x, y = problem
        samplers = optional_import("optuna", "optuna.samplers", what="a private search")
        sampler = samplers.TPESampler(seed=int(rng.integers(2**31)))
        study = PrivateStudy(self.private, sampler=sampler, ledger=ledger)
        split = len(y) - self.held_out

        def score(parameters: Mapping[str, Any]) -> NDArray[Any]:
            model = self.model(parameters).fit(x[:split], y[:split])
            return self.scores(model, x[split:], y[split:])

        study.optimize(self.space, score)
        return study

    def result(self, problem: Any, found: PrivateStudy) -> RunResult:
        """The best trial by releases, and all of them."""
        return found.result()
