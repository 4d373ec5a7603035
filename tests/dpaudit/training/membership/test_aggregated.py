"""Attacks on ranges of points and on whole data sets."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from dpaudit.base.errors import InputError
from dpaudit.training.membership import DatasetScores, RangeScores, audit_membership, audit_one_run

RNG = np.random.default_rng(0)
MASK = np.array([True, False, True])


def near_and_far(mask, rng):
    """Of five points in the range of each example, one is the one that was trained on."""
    scores = rng.normal(size=(mask.size, 5))
    scores[:, 2] += 4.0 * mask
    return scores


def single(mask, rng):
    return 0.8 * mask + rng.normal(size=mask.size)


def test_a_range_has_the_mean_of_its_largest_scores():
    scores = RNG.normal(size=(3, 4))
    found = RangeScores(lambda mask, rng: scores, trim=0.25)(MASK, RNG)
    np.testing.assert_allclose(found, [sorted(row)[1:] @ np.ones(3) / 3 for row in scores])
    whole = RangeScores(lambda mask, rng: scores, trim=0.0)(MASK, RNG)
    np.testing.assert_allclose(whole, scores.mean(axis=1))


def test_ranges_are_attacked_like_examples():
    record = audit_one_run(RangeScores(near_and_far, 0.8), 400, epsilon=1.0, seed=0)
    assert record.method == "one-run audit with canaries of ranges of points"
    assert record.details["auc"] > 0.9
    shadows = audit_membership(RangeScores(near_and_far), 100, shadows=4, epsilon=1.0, seed=0)
    assert shadows.method == "membership inference of ranges of points, lira-online"


def test_a_data_set_has_the_mean_rank_of_its_examples():
    found = DatasetScores(lambda mask, rng: np.array([5.0, 1.0, 7.0, 7.0]), [0, 1, 2, 2])(MASK, RNG)
    np.testing.assert_allclose(found, [0.5, 0.25, 0.875])


def test_all_examples_of_an_owner_are_in_or_out_together():
    seen = []

    def train(mask, rng):
        seen.append(mask.tolist())
        return 1.0 * mask

    DatasetScores(train, [2, 0, 1, 0])(MASK, RNG)
    assert seen == [[True, True, False, True]]


def test_many_examples_tell_more_than_one():
    owners = np.repeat(np.arange(200), 20)
    record = audit_one_run(DatasetScores(single, owners), 200, epsilon=1.0, seed=0)
    alone = norm.cdf(0.8 / np.sqrt(2))
    assert alone < 0.72
    assert record.details["auc"] > 0.9
    assert record.refuted


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: RangeScores(single, trim=1.0), "trim is 1"),
        (lambda: RangeScores(single, trim=-0.1), "trim is -0.1"),
        (lambda: RangeScores(single)(MASK, RNG), r"scores has shape \(3,\); it must be \(3, poi"),
        (lambda: DatasetScores(single, [0, 2]), "owners has a gap"),
        (lambda: DatasetScores(single, [1, 2]), "owners has a gap"),
        (lambda: DatasetScores(single, [0.5]), "owners has a gap"),
        (lambda: DatasetScores(single, [0, 1])(MASK, RNG), "there are 3 canaries and 2 data sets"),
        (
            lambda: DatasetScores(lambda mask, rng: mask[1:] * 1.0, [0, 1, 2])(MASK, RNG),
            r"scores has shape \(2,\); it must be one for each of the 3 examples",
        ),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(InputError, match=words):
        call()
