"""Who is trained on, and trainings that are the same wherever they run."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.base.errors import InputError
from dpaudit.training.membership.shadows import (
    Role,
    balanced_masks,
    generator,
    random_masks,
    train_models,
)


def test_every_example_is_in_half_of_the_shadow_models():
    masks = balanced_masks(9, 50, seed=1)
    assert (masks.sum(axis=0) == 4).all()
    assert len(np.unique(masks, axis=1).T) > 10


def test_masks_are_fair_coins_of_the_seed():
    masks = random_masks(3, 4000, 5, Role.TARGET_MASKS)
    np.testing.assert_array_equal(masks, random_masks(3, 4000, 5, Role.TARGET_MASKS))
    # Within 6 standard errors: a false alarm of 1e-8.
    assert (np.abs(masks.mean(axis=1) - 0.5) < 6 * 0.5 / np.sqrt(4000)).all()


def test_roles_and_models_share_no_generator():
    drawn = {generator(1, role, number).random() for role in Role for number in range(3)}
    assert len(drawn) == 3 * len(Role)


def test_every_model_has_a_generator_and_a_mask_of_its_own():
    def train(mask, rng):
        scores = mask + rng.normal(size=mask.size)
        mask[:] = False
        return scores

    masks = random_masks(3, 10, 0, Role.TARGET_MASKS)
    before = masks.copy()
    scores = train_models(train, masks, 7, Role.TARGETS)[..., 0]
    np.testing.assert_array_equal(masks, before)
    for number in range(3):
        noise = generator(7, Role.TARGETS, number).normal(size=10)
        np.testing.assert_array_equal(scores[number], before[number] + noise)


def refusing(mask, rng):
    raise InputError("rate is 2; it must be in (0, 1].")


@pytest.mark.parametrize(
    ("train", "words"),
    [
        (lambda mask, rng: None, "scores has type object"),
        (refusing, "train failed in model 0: InputError at test_shadows.py:"),
    ],
)
def test_bad_training_is_named(train, words):
    with pytest.raises(InputError, match=words):
        train_models(train, np.ones((1, 10), dtype=bool), 0, Role.TARGETS)
