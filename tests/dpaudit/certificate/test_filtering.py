"""What a privacy filter ended is certified at its budget, and verified again."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from accounting_builders import use

from dpaudit import BudgetExceededError, Claim, FloatNoise, Gaussian, Laplace, Ledger, Plan
from dpaudit.accounting import AdaptiveFilter, RenyiFilter, ZcdpFilter, guarantee
from dpaudit.base.errors import InputError, TamperedError
from dpaudit.base.files import digest
from dpaudit.certificate import (
    Certificate,
    FilterRecord,
    SubjectRecord,
    Verdict,
    certify,
    load_certificate,
    verify,
)
from dpaudit.cli.main import _outcome
from dpaudit.plan import AddRemove, PrivacyUnit, TrustModel
from dpaudit.signing.policy import Limit, Policy

ABOUT = PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL
TRAINING = Plan.dp_sgd(noise_multiplier=1.0, sample_rate=0.1, epochs=100)


def plan_of(mechanism, count: int) -> Plan:
    return Plan.of(use(mechanism, count=count, at="sums"))


def ended(plan: Plan, budget) -> FilterRecord:
    """What a filter admits one by one, before it refuses or all has passed."""
    passed = 0
    try:
        for _ in range(plan.invocations[0].releases):
            budget.admit(replace(plan.invocations[0], count=1, total=1))
            passed += 1
    except BudgetExceededError:
        pass
    return FilterRecord.of(budget, {plan.invocations[0].at: passed})


def certified(plan: Plan, filtered: FilterRecord, **stated) -> Certificate:
    made = certify(plan, subject=SubjectRecord("training"), filtered=filtered, **stated)
    return made.with_run({"summary": {}, "series": {}}, None)


def test_a_training_of_36_of_1000_steps_is_certified_at_the_budget_that_ended_it():
    filtered = ended(TRAINING, RenyiFilter(6.0, 1e-5))
    assert filtered.admitted == {"gradient": 36}
    made = certified(TRAINING, filtered, claim=Claim(6.0, 1e-5))
    assert (made.verdict, made.guarantee.epsilon) == (Verdict.CERTIFIED, 6.0)
    assert made.guarantee.compared["pld"] == pytest.approx(25.2, abs=0.01)
    assert filtered.releases(TRAINING) == "36 of at most 1000"
    for point in made.guarantee.curve:  # each by the filter or by the plan
        own = (point.epsilon, point.delta) == (6.0, 1e-5)
        assert own or point in guarantee(TRAINING, 1e-5).curve
    assert made.foreign.names == ()
    verify(made)


@pytest.mark.parametrize(
    ("plan", "budget", "passed"),
    [
        (plan_of(Laplace(5.0), 9), AdaptiveFilter(1.0, 0.0), 5),
        (plan_of(Gaussian(20.0), 90), ZcdpFilter(0.5, 1e-6), 5),
        (plan_of(Gaussian(2.0), 3), RenyiFilter(50.0, 1e-6), 3),
    ],
)
def test_the_lesser_of_plan_and_filter_is_proved(plan, budget, passed, tmp_path):
    filtered = ended(plan, budget)
    assert sum(filtered.admitted.values()) == passed
    made = certified(plan, filtered, delta=budget.delta)
    whole = guarantee(plan, budget.delta)
    least = min(whole.epsilon, budget.epsilon)
    assert least <= made.guarantee.epsilon <= least * (1 + 1e-12)
    read = load_certificate(made.save(tmp_path / "made.json"))
    assert read.filtered == filtered
    verify(read)


def test_a_filter_says_nothing_below_its_delta():
    filtered = ended(TRAINING, RenyiFilter(6.0, 1e-5))
    made = certified(TRAINING, filtered, claim=Claim(6.0, 1e-6))
    assert made.verdict is Verdict.UNPROVEN
    assert made.guarantee.epsilon == guarantee(TRAINING, 1e-6).epsilon
    verify(made)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"epsilon": 5.0}, "more than the filter admits"),
        ({"delta": 1e-9}, "more than the filter admits"),
        ({"orders": [1.5]}, "more than the filter admits"),
        ({"admitted": {"gradient": 37}}, "more than the filter admits"),
        ({"admitted": {"gradient": 1001}}, "the plan declares less"),
        ({"admitted": {"other": 1}}, "the plan declares less"),
        ({"slack": 1e-6}, "fields that the kind 'renyi' does not have"),
    ],
)
def test_what_no_filter_admits_is_refused(change, said, tmp_path):
    made = certified(TRAINING, ended(TRAINING, RenyiFilter(6.0, 1e-5)), delta=1e-5)
    record = made.to_dict()
    record["filtered"] |= change
    record.pop("digest")
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(record | {"digest": digest(record)}))
    with pytest.raises(InputError, match=said):
        verify(load_certificate(path))


def test_an_epsilon_below_the_budget_is_tampered():
    made = certified(TRAINING, ended(TRAINING, RenyiFilter(6.0, 1e-5)), delta=1e-5)
    for edited in (replace(made.guarantee, epsilon=5.9), replace(made, filtered=None).guarantee):
        wrong = replace(
            made, guarantee=edited, filtered=None if edited.epsilon == 6.0 else made.filtered
        )
        with pytest.raises(TamperedError, match="guarantee"):
            verify(wrong)


def test_a_filter_that_nothing_passed_proves_nothing():
    empty = FilterRecord("adaptive", 1e-9, 1e-5)
    made = certified(TRAINING, empty, claim=Claim(1e-9, 1e-5))
    assert made.verdict is Verdict.UNPROVEN
    assert made.guarantee == guarantee(TRAINING, 1e-5)
    filtered = ended(TRAINING, RenyiFilter(6.0, 1e-5))
    bare = certify(TRAINING, subject=SubjectRecord("x"), filtered=filtered, delta=1e-5)
    with pytest.raises(TamperedError, match="no run that passed"):
        verify(bare)


def test_a_policy_believes_a_filter_where_it_says_so():
    made = certified(TRAINING, ended(TRAINING, RenyiFilter(6.0, 1e-5)), delta=1e-5)
    (*lacks,) = Limit("row", 6.0, 1e-5).lacks(made)
    assert lacks == ["the ε that is proved at δ = 1e-05 is 25.2056; the policy wants 6 or less."]
    assert [*Limit("row", 6.0, 1e-5).lacks(made, by_filter=True)] == []
    assert Policy(accountants=("filter",)).accountants == ("filter",)


def test_a_budget_of_others_proves_nothing():
    class Generous(RenyiFilter):
        def _charge(self, part):
            return True

    assert FilterRecord.of(Generous(1.0, 1e-5), {"gradient": 1000}) is None
    assert FilterRecord.of(None, {}) is None


def test_a_ledger_tells_its_budget():
    budget = AdaptiveFilter(1.0, 0.0)
    plan = plan_of(Laplace(5.0), 9)
    assert Ledger(plan, noise=FloatNoise(), budget=budget).budget is budget
    assert Ledger(plan, noise=FloatNoise()).budget is None


def test_reports_say_how_many_of_how_many(tmp_path):
    made = certified(TRAINING, ended(TRAINING, RenyiFilter(6.0, 1e-5)), delta=1e-5)
    path = made.save(tmp_path / "made.json")
    for name in ("report.md", "report.html", "report.label.html"):
        assert _outcome(["report", str(path), "-o", str(tmp_path / name)]) == 0
        assert "36 of at most 1000" in (tmp_path / name).read_text("utf-8")
