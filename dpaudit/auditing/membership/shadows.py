"""Training models on random subsets of the examples under attack, in processes of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from dpaudit.auditing.children import Child, EndedError, HangsError
from dpaudit.auditing.distinguishing.experiment import sentence
from dpaudit.auditing.distinguishing.limits import TrialTimeoutError, within_time
from dpaudit.auditing.evidence.types import Flags, as_scores
from dpaudit.auditing.execution import Execution, Mapped
from dpaudit.errors import DpAuditError, InconclusiveError, InputError
from dpaudit.mechanisms.pairs import Floats
from dpaudit.processes import uninterrupted

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
    mapped: Mapped = map,
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
        return np.array([*mapped(training.alone, enumerate(masks))])
    with training.child() as scores:
        return np.array([*map(scores, enumerate(masks))])


@dataclass(frozen=True)
class _Training:
    """One function of a model's number and mask, which travels to other processes."""

    train: Train
    seed: int
    role: Role
    timeout: float | None
    memory: float | None

    def alone(self, numbered: tuple[int, Flags]) -> Floats:
        """The scores of one model, trained in a child of this process."""
        with self.child() as scores:
            return scores(numbered)

    @contextmanager
    def child(self) -> Iterator[Callable[[tuple[int, Flags]], Floats]]:
        """What trains models, all in the same child."""
        with uninterrupted():
            child = Child(self._scores, self.memory)
        with child:

            def scores(numbered: tuple[int, Flags]) -> Floats:
                try:
                    found: Floats = child.ask(numbered)
                except EndedError as how:
                    raise InconclusiveError(
                        f"train ended its process in model {numbered[0]}: {how}; it must return."
                    ) from None
                except HangsError:
                    raise self._too_slow(numbered[0]) from None
                return found

            yield scores

    def _scores(self, numbered: tuple[int, Flags]) -> Floats:
        number, mask = numbered
        rng = generator(self.seed, self.role, number)
        try:
            raw = within_time(self.timeout, lambda: self.train(mask.copy(), rng))
        except TrialTimeoutError:
            raise self._too_slow(number) from None
        except MemoryError:
            raise InconclusiveError(
                f"train needs more than its memory in model {number}; allow more."
            ) from None
        except DpAuditError as error:
            raise InputError(f"train failed in model {number}: {error}") from None
        except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code may raise anything
            raise InputError(
                f"train raised {type(error).__name__} in model {number}: {sentence(error)}"
            ) from None
        scores = as_scores(scores=raw)
        if scores.size != mask.size:
            raise InputError(
                f"train returned {scores.size} scores; it must give one for each of the "
                f"{mask.size} examples, included or not."
            )
        return scores

    def _too_slow(self, number: int) -> InconclusiveError:
        return InconclusiveError(
            f"train took more than {self.timeout:g} s in model {number}; it hangs, or needs a "
            "larger timeout."
        )
