"""How shadow models judge a target: likelihood ratios, and robust membership inference."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from dpaudit.base.errors import InputError
from dpaudit.training.membership.guessing import Roc
from dpaudit.training.membership.shadow_scores import (
    lira_offline,
    lira_online,
    logit_confidence,
    rmia_offline,
    rmia_online,
)
from dpaudit.training.membership.shadows import balanced_masks


def test_logit_of_confidence():
    chances = np.array([0.2, 0.5, 0.9])
    np.testing.assert_allclose(logit_confidence(-np.log(chances)), np.log(chances / (1 - chances)))
    extremes = logit_confidence([0.0, 800.0])
    assert np.isfinite(extremes).all()
    assert extremes[0] > 700 > -700 > extremes[1]


def test_lira_is_the_likelihood_ratio_of_the_fitted_laws():
    # 200 models: every example has laws of its own.
    rng = np.random.default_rng(0)
    masks = balanced_masks(200, 3, seed=0)
    scores = rng.normal(masks * np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.5, 2.0]))
    targets = rng.normal(size=(2, 3))
    online, offline = lira_online(targets, scores, masks), lira_offline(targets, scores, masks)
    for example in range(3):
        inside, outside = (
            norm(kept.mean(), kept.std(ddof=1))
            for kept in (scores[masks[:, example], example], scores[~masks[:, example], example])
        )
        for model in range(2):
            value = targets[model, example]
            expected = inside.logpdf(value) - outside.logpdf(value)
            assert online[model, example] == pytest.approx(expected)
            assert norm.cdf(offline[model, example]) == pytest.approx(outside.cdf(value))


def test_with_few_models_all_examples_share_a_variance():
    masks = balanced_masks(8, 2, seed=0)
    scores = np.random.default_rng(0).normal(size=(8, 2))
    inside = [scores[masks[:, each], each] for each in range(2)]
    pooled = sum(np.square(kept - kept.mean()).sum() for kept in inside) / (8 - 2)
    outside = [scores[~masks[:, each], each] for each in range(2)]
    rest = sum(np.square(kept - kept.mean()).sum() for kept in outside) / (8 - 2)
    found = lira_online(np.zeros((1, 2)), scores, masks)[0]
    for each in range(2):
        over = norm(inside[each].mean(), np.sqrt(pooled)).logpdf(0.0)
        under = norm(outside[each].mean(), np.sqrt(rest)).logpdf(0.0)
        assert found[each] == pytest.approx(over - under)


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


@pytest.mark.parametrize(
    ("online", "offline"), [(lira_online, lira_offline), (rmia_online, rmia_offline)]
)
def test_what_shadow_models_do_not_tell_is_named(online, offline):
    none, some = np.zeros((2, 2), dtype=bool), np.array([[True, True], [False, True]])
    with pytest.raises(InputError, match="example 0 was in none of the 2"):
        online(np.zeros((1, 2)), np.zeros((2, 2)), none)
    assert offline(np.zeros((1, 2)), np.zeros((2, 2)), none).shape == (1, 2)
    with pytest.raises(InputError, match="example 1 was in all of the 2"):
        offline(np.zeros((1, 2)), np.zeros((2, 2)), some)
    with pytest.raises(InputError, match="targets has shape"):
        offline(np.zeros((1, 3)), np.zeros((2, 2)), none)


def test_a_loss_below_zero_is_named():
    with pytest.raises(InputError, match="losses has the value -1"):
        logit_confidence([-1.0])
