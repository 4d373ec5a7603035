"""Units that are sampled as declared are silent, as often as the error rate says; others not."""

import numpy as np
import pytest

from dpaudit import (
    AddRemove,
    FixedSizeSampling,
    Gaussian,
    Invocation,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    ReplaceOne,
    TrustModel,
)
from dpaudit.auditing.replaying.replay import Comparison, ReplayReport
from dpaudit.rehearsal.samples import Samples


def plan(rate, relation=None, sampling=None):
    noise, unit = Gaussian(1.0), PrivacyUnit("row")
    facts = (unit, relation or AddRemove(), TrustModel.CENTRAL)
    return Plan.of(
        Invocation(noise, 1.0, *facts, count=8, sampling=sampling or PoissonSampling(rate), at="a")
    )


def report(inside):
    moved = [Comparison("a", None, "m:1", 1.0, float(each)) for each in inside]
    return ReplayReport(tuple(moved), ())


def findings(samples, runs, error_rate=1e-6):
    """Of one unit, given in which samples it is in each run."""
    samples.first(report(runs[0]))
    samples.further([report(each) for each in runs[1:]])
    return samples.findings(error_rate)


@pytest.mark.parametrize("rate", [1e-3, 0.1, 0.9])
def test_samples_as_declared_are_found_no_more_often_than_stated(rate):
    rng = np.random.default_rng(0)
    found = sum(
        bool(findings(Samples.of(plan(rate)), rng.random((5, 8)) < rate, 0.01)) for _ in range(2000)
    )
    assert found <= 20 + 5 * np.sqrt(20)


def test_who_is_always_in_is_found():
    (finding,) = findings(Samples.of(plan(0.1)), np.ones((3, 8)))
    assert finding.rule == "sampled-too-often"
    assert "(m:1)" in finding.message


def test_a_sample_that_serves_all_rounds_is_found_in_one_run():
    samples = Samples.of(plan(0.05))
    samples.first(report(np.ones(8)))
    assert samples.findings(1e-6)


def test_twice_the_declared_rate_is_found_in_long_runs():
    rng = np.random.default_rng(0)
    assert findings(Samples.of(plan(0.1)), rng.random((3, 1000)) < 0.2)


def test_so_many_runs_are_asked_for_that_a_unit_always_in_is_found():
    for rate in (0.01, 0.3, 0.6):
        samples = Samples.of(plan(rate))
        runs = samples.first(report([1]))
        samples.further([report([1])] * runs)
        assert samples.findings(1e-6)
    assert Samples.of(plan(0.3)).first(report([0])) == 0


def rounds(inside):
    """Each under a label of its own."""
    moved = [Comparison(f"r{n}", None, "m:1", 1.0, float(each)) for n, each in enumerate(inside)]
    return ReplayReport(tuple(moved), ())


def test_labels_of_one_rate_are_counted_together_too():
    samples = Samples({f"r{n}": 0.3 for n in range(8)})
    runs = samples.first(rounds(np.ones(8)))
    assert runs == 3
    samples.further([rounds(np.ones(8))] * runs)
    (finding,) = samples.findings(1e-6)
    assert "'r0' and 7 other labels" in finding.message
    assert samples.followed == 8 * runs


@pytest.mark.parametrize("rate", [0.1, 0.9])
def test_labels_together_keep_the_error_rate(rate):
    rng, found = np.random.default_rng(0), 0
    for _ in range(1000):
        samples = Samples({f"r{n}": rate for n in range(8)})
        samples.first(rounds(rng.random(8) < rate))
        samples.further([rounds(rng.random(8) < rate) for _ in range(4)])
        found += bool(samples.findings(0.02))
    assert found <= 20 + 5 * np.sqrt(20)


def test_a_fixed_size_has_the_rate_of_its_share():
    sampled = plan(0, ReplaceOne(), FixedSizeSampling(10, 100))
    assert Samples.of(sampled).rates == {"a": 0.1}
    unsampled = Invocation(Gaussian(1.0), 1.0, PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
    assert Samples.of(Plan.of(unsampled)).rates == {}
