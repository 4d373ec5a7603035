"""Training models on random subsets of the examples under attack, in processes of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from dpaudit.auditing.children import Child, EndedError, HangsError
from dpaudit.auditing.distinguishing.limits import TrialTimeoutError, within_time
from dpaudit.auditing.evidence.types import Flags, as_scores
from dpaudit.auditing.execution import Execution, TaskMap
from dpaudit.base.errors import DpAuditError, InconclusiveError, InputError
from dpaudit.base.processes import uninterrupted
from dpaudit.mechanisms.pairs import Floats
from dpaudit.project.foreign import error_summary

NO_LIMIT = Execution(timeout=None)
"""A training may take any time."""

Train = Callable[[Flags, np.random.Generator], Any]
"""``train(mask, rng)`` trains once, with the examples that ``mask`` includes, and gives one score
for every example, included or not: large where the model looks as if trained on it."""


def attacked(train: Train) -> str:
    """What is a canary, for the record, where it is no single example."""
    about = getattr(train, "about", None)
    return f" of {about}" if isinstance(about, str) else ""


class Role(IntEnum):
    """What randomness is for; the roles never share a generator."""

    TARGET_MASKS = 0
    SHADOW_MASKS = 1
    TARGETS = 2
    SHADOWS = 3
    TIES = 4


def generator(seed: int, role: Role, number: int = 0) -> np.random.Generator:
    """A generator of its own for each role and model."""
    sequence = np.random.SeedSequence(seed, spawn_key=(int(role), number))
    return np.random.default_rng(sequence)


def random_masks(models: int, examples: int, seed: int, role: Role) -> Flags:
    """Who is trained on: fair, independent coins, shape (models, examples)."""
    masks: Flags = generator(seed, role).random((models, examples)) < 0.5
    return masks


def balanced_masks(models: int, examples: int, seed: int) -> Flags:
    """Shadow masks in which every example is included in half of the models, rounded down."""
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
    """The scores of one model for each mask, the same wherever they are trained.

    Models are trained in child processes: whatever training does to its process, this one goes on.

    Args:
        train: called once for each mask.
        masks: shape (k, n).
        seed: of the whole audit.
        role: whose randomness the models use.
        mapped: where models are trained.
        execution: how long one training may take, and how much memory.

    Returns:
        Shape (k, n).

    Raises:
        InputError: if training fails, or does not give one number for each example.
        InconclusiveError: if it ends its process, hangs, or needs too much memory.
    """
    training = _Training(train, seed, role, execution.timeout, execution.memory)
    if mapped is not map:
        return np.array([*_told(mapped(training, enumerate(masks)), masks, execution)])
    with training.child() as child:  # one for all: it may keep what is slow to load
        trained = (training.asked(child, each) for each in enumerate(masks))
        return np.array([*_told(trained, masks, execution)])


def _told(trained: Iterator[Floats], masks: Flags, execution: Execution) -> Iterator[Floats]:
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
        """A process that trains."""
        with uninterrupted():
            return Child(self._raw, self.memory)

    def asked(self, child: Child, numbered: tuple[int, Flags]) -> Floats:
        """The scores of one model, trained in a child."""
        where = f"in model {numbered[0]}"
        try:
            scores = as_scores(scores=child.ask(numbered))
        except EndedError as how:
            said = f"train ended its process {where}: {how}; it must return."
            raise InconclusiveError(said) from None
        except (HangsError, TrialTimeoutError):
            said = f"train took more than {self.timeout:g} s {where}; it hangs, or needs more."
            raise InconclusiveError(said) from None
        except MemoryError:
            said = f"train needs more than its memory {where}; allow more."
            raise InconclusiveError(said) from None
        if scores.size != numbered[1].size:
            raise InputError(
                f"train returned {scores.size} scores; it must give one for each of the "
                f"{numbered[1].size} examples, included or not."
            )
        return scores

    def _raw(self, numbered: tuple[int, Flags]) -> Any:
        """What training gives: an array, so that nothing else has to travel."""
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
