"""What follows from a plan alone."""

from dataclasses import replace

from examples import gaussian_invocation

from dpaudit import (
    ContinualGaussian,
    Contribution,
    FixedSizeSampling,
    Gaussian,
    Invocation,
    Opaque,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    TrustModel,
    Verdict,
    ZeroOut,
)
from dpaudit.certificate import SubjectRecord, certify
from dpaudit.certificate.findings import plan_findings
from dpaudit.mechanisms import BandedToeplitz
from dpaudit.plan import CyclicPoissonSampling


def test_one_line_without_a_theorem_leaves_the_rest_its_proof():
    sampled = gaussian_invocation(sampling=PoissonSampling(0.1), at="noisy")
    plan = Plan.of(gaussian_invocation(at="plain"), sampled, replace(sampled, at="again"))
    certificate = certify(plan, subject=SubjectRecord("a plan"), delta=1e-5)
    assert certificate.verdict is Verdict.CERTIFIED
    assert certificate.guarantee.error_bound is None
    (finding,) = (each for each in certificate.findings if each.rule == "counted-as-more")
    assert finding.at == "noisy"
    assert "with probability 0.1 a use has its full cost" in finding.message
    assert "under add-remove" in finding.remedy
    less = Plan.of(plan.invocations[0])
    more = Plan.of(*(replace(each, sampling=None) for each in plan.invocations))
    costs = [
        certify(each, subject=SubjectRecord("a plan"), delta=1e-5).guarantee.epsilon
        for each in (less, plan, more)
    ]
    assert costs == sorted(costs)


def test_what_a_theorem_covers_needs_no_word():
    subsets = gaussian_invocation(sampling=FixedSizeSampling(1, 9))
    rules = {finding.rule for finding in plan_findings(Plan.of(subsets))}
    assert "counted-as-more" not in rules
    unproven = gaussian_invocation(mechanism=Opaque("x", 1.0), sampling=PoissonSampling(0.5))
    assert "opaque-mechanism" in {each.rule for each in plan_findings(Plan.of(unproven))}


def test_a_sampled_sum_under_zero_out_is_told_where_nothing_bounds_it() -> None:
    facts = {"relation": ZeroOut(), "sampling": PoissonSampling(0.1), "at": "sum"}
    told = [each.rule for each in plan_findings(Plan.of(gaussian_invocation(**facts)))]
    assert "zeroed-as-absent" in told
    bounded = Invocation.bounded(
        Gaussian(2.0), Contribution(1.0), PrivacyUnit("row"), ZeroOut(), TrustModel.CENTRAL,
        sampling=PoissonSampling(0.1), at="sum",
    )  # fmt: skip
    assert "zeroed-as-absent" not in [each.rule for each in plan_findings(Plan.of(bounded))]


def test_a_sample_of_a_stream_is_one_for_all_its_steps() -> None:
    turns = BandedToeplitz(8, bands=2)
    stream = ContinualGaussian(sigma=2.0, factorization=turns, participations=4, min_separation=2)
    cases = {PoissonSampling(0.1): True, CyclicPoissonSampling(0.1, groups=2): False, None: False}
    for sampling, told in cases.items():
        plan = Plan.of(gaussian_invocation(mechanism=stream, sampling=sampling))
        rules = [each.rule for each in plan_findings(plan)]
        assert ("one-sample-for-a-stream" in rules) == told, sampling
