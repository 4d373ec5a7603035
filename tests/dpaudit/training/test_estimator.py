import dataclasses
import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from dpaudit import InputError, Ledger, Verdict, guarantee
from dpaudit.certificate import Premise, Standing
from dpaudit.training import Privacy, PrivateClassifier, Trainer, estimator

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SHORT = Privacy(epochs=1, sample_rate=0.25, rows=30, bounds=(-3, 3), statistics=5.0, scores=5.0)
DIGITS = Privacy(
    noise_multiplier=2.0,
    sample_rate=0.1,
    epochs=4,
    rows=1500,
    bounds=(0, 16),
    statistics=8.0,
    scores=8.0,
    classes=tuple(range(10)),
)


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.fixture
def quick(monkeypatch):
    """Without certificates, half a second each."""
    monkeypatch.setattr(Trainer, "certificate", lambda *_, **__: None)


def test_it_is_an_estimator_of_scikit_learn(quick):
    passed = check_estimator(
        PrivateClassifier(SHORT, hidden=2, random_state=0), on_skip=None, on_fail=None
    )
    failed = {each["check_name"]: each["exception"] for each in passed if each["exception"]}
    failed = {name: str(error)[:200] for name, error in failed.items()}
    assert not failed
    assert sum(each["status"] == "passed" for each in passed) > 40


@pytest.fixture(scope="module")
def digits():
    x, y = load_digits(return_X_y=True)
    return x[:1500], y[:1500], x[1500:], y[1500:]


@pytest.fixture(scope="module")
def fitted(digits):
    return PrivateClassifier(DIGITS, hidden=0, learning_rate=1.0, random_state=1).fit(*digits[:2])


def test_digits_are_told_and_all_looks_at_them_are_certified(digits, fitted):
    certificate = fitted.certificate_
    assert fitted.score(*digits[2:]) > 0.6  # it is .8 and more; chance is .1
    assert certificate.verdict is Verdict.CERTIFIED
    assert certificate.plan == DIGITS.plan()
    assert certificate.guarantee.epsilon == guarantee(DIGITS.plan(), 1e-5).epsilon
    rules = {each.rule for each in certificate.findings}
    assert not {"classes-from-data", "resumed-steps-not-observed"} & rules
    assert certificate.run["summary"]["noisy_steps"] == 40
    bare = dataclasses.replace(DIGITS, statistics=None, scores=None)
    assert guarantee(bare.plan(), 1e-5).epsilon < certificate.guarantee.epsilon
    assert len(fitted.scores_) == 4


def test_a_fitted_model_holds_nothing_but_what_was_released(fitted):
    """A gradient of one row of a linear model is that row, and would be written with a pickle."""
    read = pickle.loads(pickle.dumps(fitted))  # our own
    for model in (fitted.model_, read.model_):
        assert not any(vars(p) or p.grad is not None for p in model.parameters())
        assert not model._forward_pre_hooks


@pytest.mark.parametrize("settings", [{"hidden": -1}, {"hidden": 2.5}, {"learning_rate": np.inf}])
def test_wrong_settings_are_said(digits, settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        PrivateClassifier(DIGITS, **settings).fit(*digits[:2])


def test_privacy_is_frozen_and_no_parameter_of_its_own(fitted):
    with pytest.raises(dataclasses.FrozenInstanceError):
        DIGITS.noise_multiplier = 0.1
    with pytest.raises(AttributeError, match="Privacy"):
        fitted.set_params(privacy__noise_multiplier=0.1)
    assert clone(fitted).privacy == DIGITS
    with pytest.raises(InputError, match="it must be a Privacy"):
        PrivateClassifier({"noise_multiplier": 0.1}).fit(np.eye(4), [0, 1, 0, 1])


def test_what_a_row_adds_to_the_statistics_is_bounded(monkeypatch):
    """One row more, the farthest there is, moves the noiseless sum by the declared norm at most."""
    seen = []
    monkeypatch.setattr(Ledger, "sum", lambda self, rows, at: seen.append(rows) or rows.sum(0))
    with Ledger(SHORT.plan()) as ledger:
        x = estimator._between(np.full((3, 5), 1e9), SHORT.bounds)
        found = estimator._statistics(SHORT, x, np.array([0, 1, 1]), 2, ledger)
        ledger.close()
    assert np.linalg.norm(seen[0], axis=1) == pytest.approx([2**0.5] * 3)
    assert SHORT.plan().invocations[1].sensitivity == pytest.approx(2**0.5)
    assert found[0] == pytest.approx(np.ones(5))
    assert found[2] == pytest.approx([1.5, 0.75])  # as scikit-learn balances classes


def test_statistics_come_near_the_truth_with_little_noise():
    drawing = np.random.default_rng(0)
    x, y = drawing.normal(0.3, 0.2, (4000, 3)), drawing.integers(0, 2, 4000)
    loud = dataclasses.replace(SHORT, statistics=0.01, bounds=(-1, 1))
    with Ledger(loud.plan(), rng=np.random.default_rng(1)) as ledger:
        found = estimator._statistics(loud, np.clip(x, -1, 1), y, 2, ledger)
        ledger.close()
    assert found[0] == pytest.approx(np.clip(x, -1, 1).mean(0), abs=1e-3)
    assert found[1] == pytest.approx(np.clip(x, -1, 1).std(0), abs=1e-2)


def test_it_stops_on_noisy_scores_and_says_so(digits):
    privacy = dataclasses.replace(DIGITS, epochs=30, patience=1, scores=50.0)
    model = PrivateClassifier(privacy, hidden=0, random_state=3).fit(*digits[:2])
    assert len(model.scores_) < 30
    assert model.certificate_.verdict is Verdict.CERTIFIED
    assert "training-ended-early" in {each.rule for each in model.certificate_.findings}


def test_classes_of_the_data_are_a_finding_and_unknown_ones_an_error(digits):
    x, y = digits[0][:60], digits[1][:60]
    short = dataclasses.replace(DIGITS, epochs=1, classes=None)
    certificate = PrivateClassifier(short, random_state=0).fit(x, y).certificate_
    assert "classes-from-data" in {each.rule for each in certificate.findings}
    assert certificate.verdict is Verdict.UNPROVEN  # a row with a class of its own is seen
    with pytest.raises(InputError, match="not a public class") as said:
        PrivateClassifier(dataclasses.replace(short, classes=(0, 1))).fit(x, y)
    assert "9" not in str(said.value)


def test_without_a_seed_nobody_can_repeat_it(digits, quick):
    x, y = digits[0][:100], digits[1][:100]
    short = dataclasses.replace(DIGITS, epochs=1)
    made = [PrivateClassifier(short).fit(x, y).predict_proba(x) for _ in range(2)]
    assert not np.allclose(*made)
    same = [PrivateClassifier(short, random_state=5).fit(x, y).predict_proba(x) for _ in range(2)]
    assert np.array_equal(*same)


def test_noise_is_exact_unless_the_model_is_too_large(digits):
    x, y = digits[0][:100], digits[1][:100]
    short = dataclasses.replace(DIGITS, epochs=1)
    certificate = PrivateClassifier(short, hidden=0).fit(x, y).certificate_
    (sampler,) = certificate.run["ledger"]["samplers"]
    assert "numpy" not in sampler
    standing = {each.premise: each.standing for each in certificate.assumptions}
    assert standing[Premise.NOISE] is Standing.ENFORCED
    certificate = PrivateClassifier(short, hidden=300).fit(x, y).certificate_
    assert any("numpy" in each for each in certificate.run["ledger"]["samplers"])
    assert "float-noise" in {each.rule for each in certificate.findings}


def test_it_goes_with_searches(digits, quick):
    x, y = digits[0][:200], digits[1][:200]
    model = PrivateClassifier(dataclasses.replace(DIGITS, epochs=1), hidden=0, random_state=0)
    assert len(cross_val_score(model, x, y, cv=2)) == 2
    found = GridSearchCV(model, {"learning_rate": [0.1, 1.0]}, cv=2).fit(x, y)
    assert found.best_params_["learning_rate"] in (0.1, 1.0)
