"""Robust membership inference, against its definition."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.base.errors import InputError
from dpaudit.training.membership.guessing import Roc
from dpaudit.training.membership.shadow_scores import rmia_offline, rmia_online


def world(models, examples=40, seed=0, shift=2.0):
    """Logits of models that are surer of what they saw, of examples that are not equally hard."""
    rng = np.random.default_rng(seed)
    levels = np.random.default_rng(1).normal(scale=3.0, size=examples)
    masks = rng.random((models, examples)).argsort(axis=0) < models // 2
    return levels + shift * masks + rng.normal(size=masks.shape), masks


def confidence(logits):
    return 1 / (1 + np.exp(-logits))


def by_definition(targets, usual):
    """The share of all z with (p(x|θ) / p(x)) / (p(z|θ) / p(z)) at least 1."""
    ratios = confidence(targets) / usual
    return np.array([[np.mean([x / z >= 1 for z in row]) for x in row] for row in ratios])


def test_online_scores_are_those_of_the_definition():
    (scores, masks), (targets, _) = world(8), world(2, seed=5)
    inside = np.array([confidence(s[m]).mean() for s, m in zip(scores.T, masks.T, strict=True)])
    outside = np.array([confidence(s[~m]).mean() for s, m in zip(scores.T, masks.T, strict=True)])
    found = rmia_online(targets, scores, masks)
    np.testing.assert_allclose(found, by_definition(targets, (inside + outside) / 2))
    offline = rmia_offline(targets, scores, masks)
    np.testing.assert_allclose(offline, by_definition(targets, (1.3 * outside + 0.7) / 2))


@pytest.mark.parametrize("attack", [rmia_online, rmia_offline])
def test_it_tells_members_where_examples_differ(attack):
    (scores, masks), (targets, members) = world(8, 400), world(2, 400, seed=5)
    found = attack(targets, scores, masks)
    plain = Roc.of(targets.ravel(), members.ravel()).auc
    assert Roc.of(found.ravel(), members.ravel()).auc > plain + 0.05


@pytest.mark.parametrize("extreme", [-1e4, 1e4])
def test_no_confidence_is_too_small_or_too_large(extreme):
    masks = np.array([[True, False], [False, True]])
    for attack in (rmia_online, rmia_offline):
        found = attack(np.full((1, 2), extreme), np.full((2, 2), -extreme), masks)
        assert np.isfinite(found).all()


def test_examples_that_shadow_models_never_saw_are_named():
    masks = np.zeros((4, 3), dtype=bool)
    with pytest.raises(InputError, match="example 0 was in none of the 4 shadow models"):
        rmia_online(np.zeros((1, 3)), np.zeros((4, 3)), masks)
    assert rmia_offline(np.zeros((1, 3)), np.zeros((4, 3)), masks).shape == (1, 3)
    with pytest.raises(InputError, match="they must be"):
        rmia_offline(np.zeros((1, 2)), np.zeros((4, 3)), masks)
