"""Models trained on random subsets of the examples under attack, in processes of their own.

Every audit here trains by it. A model's scores follow from the seed, its role and its number,
wherever it is trained. Trainings under attack by a range of points or a whole data set are made of
others, so that every attack takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.auditing.children import Child, EndedError, HangsError, TrialTimeoutError, within_time
from dpaudit.auditing.evidence.events import Flags, as_scores
from dpaudit.auditing.execution import Execution, TaskMap
from dpaudit.base.errors import DpAuditError, InconclusiveError, InputError
from dpaudit.base.processes import uninterrupted
from dpaudit.base.validate import probability, real_array
from dpaudit.mechanisms.pairs import Floats
from dpaudit.project.foreign import error_summary

NO_LIMIT = Execution(timeout=None)
"""A training may take any time."""

Train = Callable[[Flags, np.random.Generator], Any]
"""``train(mask, rng)`` trains once, with the examples that ``mask`` includes, and gives one score
for every example, included or not: large where the model looks as if trained on it."""


def further_of(train: Train) -> tuple[str, ...]:
    """Return what a training tells of each example beside its score, by name."""
    found: tuple[str, ...] = getattr(train, "further", ())
    return found


def canary_words(train: Train) -> str:
    """Return what is a canary, for the record, where it is no single example."""
    about = getattr(train, "about", None)
    return f" of {about}" if isinstance(about, str) else ""


class Role(IntEnum):
    """A use of randomness; the roles never share a generator."""

    TARGET_MASKS = 0
    SHADOW_MASKS = 1
    TARGETS = 2
    SHADOWS = 3
    TIES = 4


def generator(seed: int, role: Role, number: int = 0) -> np.random.Generator:
    """Return a generator of its own for each role and model."""
    sequence = np.random.SeedSequence(seed, spawn_key=(int(role), number))
    return np.random.default_rng(sequence)


def random_masks(models: int, examples: int, seed: int, role: Role) -> Flags:
    """Tell who is trained on: fair, independent coins, shape (models, examples)."""
    masks: Flags = generator(seed, role).random((models, examples)) < 0.5
    return masks


def balanced_masks(models: int, examples: int, seed: int) -> Flags:
    """Draw shadow masks that include every example in half of the models, rounded down."""
    places = generator(seed, Role.SHADOW_MASKS).random((models, examples)).argsort(axis=0)
    masks: Flags = places < models // 2
    return masks


def train_models(
    train: Train,
    masks: Flags,
    seed: int,
    role: Role,
    mapped: TaskMap = map,
    execution: Execution = NO_LIMIT,
) -> Floats:
    """Return all that one model for each mask tells, the same wherever they are trained.

    Models are trained in child processes: whatever training does to its process, this one goes on.

    Args:
        train: called once for each mask.
        masks: shape (k, n).
        seed: of the whole audit.
        role: whose randomness the models use.
        mapped: where models are trained.
        execution: how long one training may take, and how much memory.

    Returns:
        Shape (k, n, 1) of scores; (k, n, 1 + m) where a training tells m numbers more.

    Raises:
        InputError: if training fails, or does not give one number for each example.
        InconclusiveError: if it ends its process, hangs, or needs too much memory.
    """
    training = _Training(train, seed, role, execution.timeout, execution.memory)
    with ExitStack() as kept:
        trained: Iterator[Floats] = mapped(training, enumerate(masks))
        if mapped is map:  # one child for all: it may keep what is slow to load
            child = kept.enter_context(training.child())
            trained = (training.asked(child, each) for each in enumerate(masks))
        told = np.array([*_with_progress(trained, masks, execution)])
    return told.reshape(*masks.shape, 1 + len(further_of(train)))


def _with_progress(
    trained: Iterator[Floats], masks: Flags, execution: Execution
) -> Iterator[Floats]:
    for number, scores in enumerate(trained, start=1):
        if execution.progress is not None:
            execution.progress(number, len(masks))
        yield scores


@dataclass(frozen=True)
class _Training:
    """One function of a model's number and mask, which travels to other processes."""

    train: Train
    seed: int
    role: Role
    timeout: float | None
    memory: float | None

    def __call__(self, numbered: tuple[int, Flags]) -> Floats:
        """The scores of one model, trained in a child of its own."""
        with self.child() as child:
            return self.asked(child, numbered)

    def child(self) -> Child:
        """Return a process that trains."""
        with uninterrupted():
            return Child(self._raw, self.memory)

    def asked(self, child: Child, numbered: tuple[int, Flags]) -> Floats:
        """Return the scores of one model, trained in a child."""
        where = f"in model {numbered[0]}"
        try:
            told = np.asarray(child.ask(numbered))
        except EndedError as how:
            said = f"train ended its process {where}: {how}; it must return."
            raise InconclusiveError(said) from None
        except (HangsError, TrialTimeoutError):
            said = f"train took more than {self.timeout:g} s {where}; it may need a larger timeout."
            raise InconclusiveError(said) from None
        except MemoryError:
            said = f"train needs more than its memory {where}; allow more."
            raise InconclusiveError(said) from None
        more, size = len(further_of(self.train)), numbered[1].size
        scores = as_scores(scores=told.ravel() if more else told)
        if scores.size != size * (1 + more):
            raise InputError(
                f"train returned {scores.size} scores; it must give one for each of the {size} "
                "examples, included or not."
            )
        return scores.reshape(size, 1 + more)

    def _raw(self, numbered: tuple[int, Flags]) -> Any:
        """Return what training gives: an array, so that nothing else has to travel."""
        number, mask = numbered
        rng = generator(self.seed, self.role, number)
        try:
            return within_time(self.timeout, lambda: np.asarray(self.train(mask.copy(), rng)))
        except MemoryError:
            raise
        except DpAuditError as error:
            raise InputError(f"train failed in model {number}: {error_summary(error)}") from None
        except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code may raise anything
            raise InputError(
                f"train raised {error_summary(error, f' in model {number}')}"
            ) from None


@dataclass(frozen=True)
class RangeScores:
    """A training asked whether it saw any point near this one (Tao and Shokri 2024, RaMIA).

    Attributes:
        train: like a :data:`Train`, but gives for each example the scores of points sampled from
            the range around it, shape (n, points), such as images that are turned a little.
        trim: share of the points, of the smallest scores, that is left out of the mean: points of a
            range that are far from the one that was trained on say nothing.

    Raises:
        InputError: if trim is not in [0, 1); at a call, if the scores have another shape.

    Example:
        >>> near = RangeScores(lambda mask, rng: np.outer(mask, [3.0, 1.0]), trim=0.5)
        >>> near(np.array([True, False]), np.random.default_rng(0)).tolist()
        [3.0, 0.0]
    """

    about: ClassVar[str] = "ranges of points"

    train: Train
    trim: float = 0.5

    def __post_init__(self) -> None:
        probability(trim=self.trim)

    def __call__(self, mask: Flags, rng: np.random.Generator) -> Floats:
        """The trimmed mean over the range of each example, shape (n,)."""
        scores = real_array(scores=self.train(mask, rng))
        if scores.ndim != 2 or scores.shape[0] != mask.size or not scores.size:
            raise InputError(
                f"scores has shape {scores.shape}; it must be ({mask.size}, points), a row for "
                "each example."
            )
        left_out = int(self.trim * scores.shape[1])
        means: Floats = np.sort(scores, axis=1)[:, left_out:].mean(axis=1)
        return means


@dataclass(frozen=True)
class DatasetScores:
    """A training asked whether it saw the data of an owner, all of them together or none.

    The score of a data set is the mean rank of its examples' scores among all: how much of it looks
    used, as in dataset usage inference (Tong, Ye, Zarifzadeh and Shokri 2025), with ranks in place
    of guesses at one threshold.

    Attributes:
        train: a :data:`Train` on single examples.
        owners: for each of these the number of its data set, from 0; the canaries are data sets.

    Raises:
        InputError: if owners leave a number out; at a call, if memberships are not as many.

    Example:
        >>> whole = DatasetScores(lambda mask, rng: 1.0 * mask, [0, 0, 1])
        >>> whole(np.array([True, False]), np.random.default_rng(0)).round(2).tolist()
        [0.83, 0.33]
    """

    about: ClassVar[str] = "whole data sets"

    train: Train
    owners: ArrayLike

    def __post_init__(self) -> None:
        owners = np.asarray(self.owners)
        whole = owners.ndim == 1 and owners.dtype.kind in "iu" and owners.size > 0
        if not whole or owners.min() != 0 or (np.bincount(owners) == 0).any():
            raise InputError("owners has a gap; it must number the data sets from 0 on.")

    def __call__(self, mask: Flags, rng: np.random.Generator) -> Floats:
        """The mean rank of each data set's examples, shape (data sets,), in (0, 1]."""
        from scipy.stats import rankdata

        owners = np.asarray(self.owners)
        sizes = np.bincount(owners)
        if mask.size != sizes.size:
            raise InputError(
                f"there are {mask.size} canaries and {sizes.size} data sets; give equally many."
            )
        scores = real_array(scores=self.train(mask[owners], rng))
        if scores.shape != owners.shape:
            raise InputError(
                f"scores has shape {scores.shape}; it must be one for each of the {owners.size} "
                "examples."
            )
        means: Floats = np.bincount(owners, rankdata(scores) / scores.size) / sizes
        return means
