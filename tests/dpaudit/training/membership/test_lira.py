"""Likelihood ratios of shadow models against the laws that they are fitted by."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from dpaudit.base.errors import InputError
from dpaudit.training.membership.shadow_scores import lira_offline, lira_online, logit_confidence
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


def test_bad_input_is_named():
    with pytest.raises(InputError, match="example 0 was in none of the 2"):
        lira_online(np.zeros((1, 2)), np.zeros((2, 2)), np.zeros((2, 2), dtype=bool))
    with pytest.raises(InputError, match="example 1 was in all of the 2"):
        lira_offline(np.zeros((1, 2)), np.zeros((2, 2)), np.array([[True, True], [False, True]]))
    with pytest.raises(InputError, match="targets has shape"):
        lira_offline(np.zeros((1, 3)), np.zeros((2, 2)), np.zeros((2, 2), dtype=bool))
    with pytest.raises(InputError, match="losses has the value -1"):
        logit_confidence([-1.0])
