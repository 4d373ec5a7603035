"""The operating curve against the rank sum statistic and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm, rankdata
from sklearn.metrics import roc_curve

from dpaudit.base.errors import InputError
from dpaudit.training.membership.guessing import Roc, require_both_kinds

scored = st.integers(2, 40).flatmap(
    lambda n: st.tuples(
        arrays(np.float64, n, elements=st.integers(-5, 5).map(float)),
        arrays(np.bool_, n).filter(lambda flags: flags.any() and not flags.all()),
    )
)


@settings(deadline=None, max_examples=50)
@given(scored)
def test_auc_is_the_rank_sum_statistic(case):
    scores, members = case
    ranks = rankdata(scores)
    hits, others = members.sum(), (~members).sum()
    expected = (ranks[members].sum() - hits * (hits + 1) / 2) / (hits * others)
    assert Roc.of(scores, members).auc == pytest.approx(expected)


@settings(deadline=None, max_examples=50)
@given(scored)
def test_the_curve_is_that_of_scikit_learn(case):
    scores, members = case
    fpr, tpr, _ = roc_curve(members, scores, drop_intermediate=False)
    roc = Roc.of(scores, members)
    np.testing.assert_allclose(roc.fpr, fpr)
    np.testing.assert_allclose(roc.tpr, tpr)
    for limit in (0.0, 0.1, 0.5):
        assert roc.tpr_at(limit) == pytest.approx(tpr[fpr <= limit].max())


def test_a_long_curve_is_thinned_but_keeps_its_ends():
    rng = np.random.default_rng(0)
    members = rng.random(20_000) < 0.5
    details = Roc.of(rng.normal(members), members).details()
    fpr, tpr = details["roc"]["fpr"], details["roc"]["tpr"]
    assert len(fpr) == len(tpr) <= 200
    assert fpr == sorted(fpr)
    assert tpr == sorted(tpr)
    assert (fpr[0], tpr[0], fpr[-1], tpr[-1]) == (0.0, 0.0, 1.0, 1.0)
    assert set(details["tpr_at_fpr"]) == {"0.001", "0.01"}
    # The normal laws' own figure, within 5 standard errors of 100 false positives.
    expected = norm.sf(norm.isf(0.01) - 1)
    assert details["tpr_at_fpr"]["0.01"] == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize(
    ("scores", "members", "words"),
    [
        ([1.0], [True, False], "scores has 1 entries and members has 2"),
        ([np.nan, 1.0], [True, False], "scores contains NaN"),
        ([1.0, 2.0], [True, True], "no non-member among 2"),
        ([], np.empty(0, dtype=bool), "no member among 0"),
        ([1.0, 2.0], [0.5, 1.0], "members has type float64"),
        ([1.0, 2.0], [2, 1], "members has type int64"),
    ],
)
def test_what_is_no_attack_is_named(scores, members, words):
    with pytest.raises(InputError, match=words):
        require_both_kinds(scores, members)


def test_zeros_and_ones_are_members():
    assert require_both_kinds([0.0, 1.0, 2.0], [0, 1, 1])[1].tolist() == [False, True, True]
