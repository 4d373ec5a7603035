"""Training models on random subsets of the examples under attack, here or in worker processes."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import Any

import numpy as np

from dpaudit.auditing.distinguishing.experiment import sentence
from dpaudit.auditing.evidence.types import Flags, as_scores
from dpaudit.auditing.execution import Mapped
from dpaudit.errors import DpAuditError, InputError
from dpaudit.mechanisms.pairs import Floats

Train = Callable[[Flags, np.random.Generator], Any]
"""``train(mask, rng)`` trains once, with the examples that ``mask`` includes, and gives one score
for every example, included or not: large where the model looks as if trained on it."""


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


def train_models(train: Train, masks: Flags, seed: int, role: Role, mapped: Mapped = map) -> Floats:
    """The scores of one model for each mask, the same wherever they are trained.

    Args:
        train: called once for each mask.
        masks: shape (k, n).
        seed: of the whole audit.
        role: whose randomness the models use.
        mapped: where models are trained.

    Returns:
        Shape (k, n).

    Raises:
        InputError: if training fails, or does not give one number for each example.
    """
    return np.array([*mapped(partial(_shadow_scores, train, seed, role), enumerate(masks))])


def _shadow_scores(train: Train, seed: int, role: Role, numbered: tuple[int, Flags]) -> Floats:
    number, mask = numbered
    try:
        raw = train(mask.copy(), generator(seed, role, number))
    except DpAuditError as error:
        raise InputError(f"train failed in model {number}: {error}") from None
    except (Exception, SystemExit) as error:
        raise InputError(
            f"train raised {type(error).__name__} in model {number}: {sentence(error)}"
        ) from error
    scores = as_scores(scores=raw)
    if scores.size != mask.size:
        raise InputError(
            f"train returned {scores.size} scores; it must give one for each of the {mask.size} "
            "examples, included or not."
        )
    return scores
