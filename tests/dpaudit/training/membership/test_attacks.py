"""Attacks on members: scores of shadow models, and what is proved by them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binom, norm, rankdata
from sklearn.metrics import roc_curve

from dpaudit.base.errors import InputError
from dpaudit.mechanisms import Gaussian
from dpaudit.plan import AddRemove, Invocation, Plan, PrivacyUnit, TrustModel
from dpaudit.training.membership import (
    DatasetScores,
    MembershipAttack,
    RangeScores,
    audit_membership,
    audit_one_run,
)
from dpaudit.training.membership.lira import lira_offline, lira_online, logit_confidence
from dpaudit.training.membership.rmia import rmia_offline, rmia_online
from dpaudit.training.membership.roc import Roc, require_both_kinds
from dpaudit.training.membership.shadows import (
    Role,
    balanced_masks,
    generator,
    random_masks,
    train_models,
)

# -- membership inference with shadow models -------------------------------------------------------


DELTA = 1e-5


def gaussian_plan(sigma, relation=None):
    row = PrivacyUnit("row")
    return Plan.of(Invocation(Gaussian(sigma), 1, row, relation or AddRemove(), TrustModel.CENTRAL))


class Shifted:
    """Every member's score is higher by ``shift``, in units of the noise: exactly GDP."""

    def __init__(self, shift):
        self.shift = shift

    def __call__(self, mask, rng):
        return self.shift * mask + rng.normal(size=mask.size)


def test_examples_that_differ_are_told_apart_by_lira_alone():
    # Each example has a level of its own, which one threshold for all cannot know.
    levels = np.random.default_rng(0).normal(scale=10.0, size=400)

    def train(mask, rng):
        return levels + 2.0 * mask + rng.normal(size=mask.size)

    auc = {
        attack: audit_membership(
            train, 400, attack=attack, shadows=16, epsilon=1.0, guesses=(50, 50), seed=0
        ).details["auc"]
        for attack in MembershipAttack
    }
    best = norm.cdf(2 / np.sqrt(2))
    assert auc[MembershipAttack.THRESHOLD] < 0.65
    assert best - 0.06 < auc[MembershipAttack.LIRA_OFFLINE] < best + 0.05
    assert best - 0.06 < auc[MembershipAttack.LIRA_ONLINE] < best + 0.05


def test_false_alarms_of_shadow_attacks_are_rare():
    # More alarms in 25 true claims at error rate 0.1 would be chance once in 10^7.
    plan, options = gaussian_plan(1.0), {"shadows": 8, "targets": 3, "guesses": (15, 15)}
    alarms = sum(
        audit_membership(
            Shifted(1.0), 60, plan=plan, delta=DELTA, seed=seed, confidence=0.9, **options
        ).refuted
        for seed in range(25)
    )
    assert alarms <= binom.isf(1e-7, 25, 0.1)


def test_workers_do_not_change_the_record():
    options = {"shadows": 4, "epsilon": 1.0, "seed": 3, "guesses": (10, 10)}
    alone, together = (
        audit_membership(Shifted(1.0), 50, workers=workers, **options) for workers in (1, 2)
    )
    assert alone == together


def test_bad_options_are_named():
    options = {"epsilon": 1.0, "seed": 0}
    with pytest.raises(InputError, match="attack is 'guess'"):
        audit_membership(Shifted(1.0), 50, attack="guess", **options)
    with pytest.raises(InputError, match="shadows is 3"):
        audit_membership(Shifted(1.0), 50, shadows=3, **options)
    with pytest.raises(InputError, match="infinite score"):
        audit_membership(lambda mask, rng: np.where(mask, np.inf, 0.0), 50, **options)
    with pytest.raises(InputError, match="dask, timeout, memory and no journal"):
        audit_membership(Shifted(1.0), 50, journal="x", **options)


# -- who is trained on, and trainings that are the same wherever they run --------------------------


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
    scores = train_models(train, masks, 7, Role.TARGETS)
    np.testing.assert_array_equal(masks, before)
    for number in range(3):
        noise = generator(7, Role.TARGETS, number).normal(size=10)
        np.testing.assert_array_equal(scores[number], before[number] + noise)


def raising(mask, rng):
    raise ZeroDivisionError("one\ntwo")


def refusing(mask, rng):
    raise InputError("rate is 2; it must be in (0, 1].")


@pytest.mark.parametrize(
    ("train", "words"),
    [
        (lambda mask, rng: mask[:-1] * 1.0, "train returned 9 scores"),
        (lambda mask, rng: np.where(mask, np.nan, 0.0), "scores contains NaN"),
        (lambda mask, rng: None, "scores has type object"),
        (lambda mask, rng: exit(3), r"train raised SystemExit in model 0 at test_attacks.py:"),
        (raising, r"train raised ZeroDivisionError in model 0 at test_attacks.py:"),
        (refusing, "train failed in model 0: InputError at test_attacks.py:"),
    ],
)
def test_bad_training_is_named(train, words):
    with pytest.raises(InputError, match=words):
        train_models(train, np.ones((1, 10), dtype=bool), 0, Role.TARGETS)


# -- likelihood ratios of shadow models against the laws that they are fitted by -------------------


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


# -- robust membership inference, against its definition -------------------------------------------


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


# -- attacks on ranges of points and on whole data sets --------------------------------------------


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
        (lambda: DatasetScores(single, [0, 2]), "owners is wrong"),
        (lambda: DatasetScores(single, [1, 2]), "owners is wrong"),
        (lambda: DatasetScores(single, [0.5]), "owners is wrong"),
        (lambda: DatasetScores(single, [0, 1])(MASK, RNG), "there are 3 canaries and 2 data sets"),
        (
            lambda: DatasetScores(lambda mask, rng: mask[1:] * 1.0, [0, 1, 2])(MASK, RNG),
            r"scores has shape \(2,\); it must be one for each of the 3 examples",
        ),
    ],
)
def test_bad_input_of_aggregates_is_named(call, words):
    with pytest.raises(InputError, match=words):
        call()


# -- the operating curve against the rank sum statistic and scikit-learn ---------------------------


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
