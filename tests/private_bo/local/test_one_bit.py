"""One-bit responses: their law, by enumeration; what is declared, and what the learner sees."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from crowds import Crowd, ledger_of, problem, run
from rehearsals import Gossip, rules
from subject_conformance import SubjectConformance

from dpaudit import guarantee
from dpaudit.base.errors import InputError, PlanMismatchError
from dpaudit.mechanisms import RandomizedResponse
from dpaudit.plan import PrivacyUnit, ReplaceOne, TrustModel
from private_bo.local import LDPOneBitGP

ASYMMETRIC = LDPOneBitGP(epsilon=0.5, lower=1.0, upper=5.0, steps=12)


class OtherFifth(Crowd):
    """The same people, but that the fifth answers at the end of the range."""

    def respond(self, index, rng):
        response = super().respond(index, rng)
        return replace(response, value=-2.0) if self.asked == 5 else response


class TestConformance(SubjectConformance):
    subject = LDPOneBitGP(epsilon=1.0, steps=12)

    def data(self):
        return problem(value=2.0)

    def neighbour(self):
        return replace(problem(), rewards=OtherFifth(value=2.0))

    def bad_data(self):
        yield []
        yield from (problem(value=value) for value in (math.nan, np.zeros(2), "one", [None]))


def law(subject: LDPOneBitGP, reward: float) -> Fraction:
    """The exact probability that the released bit is 1."""
    ends = [Fraction(each) for each in subject.range]
    share = (min(max(Fraction(reward), ends[0]), ends[1]) - ends[0]) / (ends[1] - ends[0])
    ones = [subject.mechanism.probabilities(bit)[1] for bit in (0, 1)]
    return share * ones[1] + (1 - share) * ones[0]


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 4.0])
def test_no_two_rewards_are_told_apart_by_more(epsilon: float) -> None:
    subject = replace(ASYMMETRIC, epsilon=epsilon)
    ones = [law(subject, reward) for reward in (-1e9, 1.0, 1.7, 3.0, 5.0, 1e9)]
    odds = max(ones) / min(ones), (1 - min(ones)) / (1 - max(ones))
    assert max(math.log(each) for each in odds) == pytest.approx(epsilon, rel=1e-12)
    assert guarantee(subject.plan(), 0.0).epsilon == pytest.approx(epsilon, rel=1e-12)
    assert guarantee(subject.plan(), 0.0).epsilon <= epsilon


@pytest.mark.parametrize("reward", [-3.0, 1.0, 2.2, 3.0, 4.9, 9.0])
def test_the_estimate_is_unbiased_of_known_variance(reward: float) -> None:
    one, scale = float(law(ASYMMETRIC, reward)), ASYMMETRIC.scale
    mean = scale * (2 * one - 1)
    assert mean == pytest.approx((min(max(reward, 1.0), 5.0) - 3.0) / 2.0, abs=1e-12)
    variance = scale**2 * 4 * one * (1 - one)
    assert variance == pytest.approx(scale**2 - mean**2, rel=1e-12)
    assert scale == pytest.approx(1 / math.tanh(0.25), rel=1e-12)


def test_the_model_and_the_channel_have_the_law() -> None:
    """Seven standard errors of 20 000 bits: false alarms below 1e-11."""
    rng = np.random.default_rng(0)
    for reward in (1.0, 2.0, 4.5):
        one = float(law(ASYMMETRIC, reward))
        bound = 7 * math.sqrt(one * (1 - one) / 20_000)
        bits = ASYMMETRIC.audit_release(reward, 20_000, rng)
        assert set(bits.tolist()) == {0, 1}
        assert abs(bits.mean() - one) < bound
    subject = replace(ASYMMETRIC, steps=2000)
    with ledger_of(subject) as ledger:
        channel = subject.channel(ledger, rng)
        heard = [channel(f"user {n}", 2.0) for n in range(2000)]
    assert set(heard) == {subject.scale, -subject.scale}
    assert abs(np.mean(heard) + 0.5) < 7 * subject.scale / math.sqrt(2000)


def test_plan_and_claim() -> None:
    (invocation,) = ASYMMETRIC.plan().invocations
    assert isinstance(invocation.mechanism, RandomizedResponse)
    assert (invocation.sensitivity, invocation.count, invocation.total) == (1.0, 1, 12)
    assert (invocation.relation, invocation.trust) == (ReplaceOne(), TrustModel.LOCAL)
    assert invocation.unit == PrivacyUnit("response")
    twice = replace(ASYMMETRIC, answers_per_user=2)
    assert twice.claim().epsilon == 1.0
    assert guarantee(twice.plan(), 0.0).epsilon <= 1.0
    assert twice.audit_release([1.0, 5.0], 3, np.random.default_rng(0)).shape == (3, 2)


def test_a_user_answers_no_more_than_declared() -> None:
    with (
        pytest.raises(PlanMismatchError, match="this one has been charged that often"),
        ledger_of(ASYMMETRIC) as ledger,
    ):
        ASYMMETRIC.run(problem(name="ann"), ledger, np.random.default_rng(0))


def test_the_learner_sees_only_clipped_rewards() -> None:
    subject = LDPOneBitGP(epsilon=10.0, steps=40)
    at_the_end = run(subject, problem(value=2.0))
    assert run(subject, problem(value=1e9)) == at_the_end
    assert run(subject, problem(value=-1e9)) == run(subject, problem(value=-2.0))


def test_it_learns() -> None:
    """At an ε that leaves signal, the mean of 4 runs is far below uniform play."""
    relative = []
    for seed in range(4):
        subject = LDPOneBitGP(epsilon=6.0, steps=150)
        data = subject.load("synthetic-se", np.random.default_rng(seed))
        regret = run(subject, data, seed)
        relative.append(regret[-1] / (150 * (data.f.max() - data.f.mean())))
    assert np.mean(relative) < 0.4


def test_the_estimate_is_in_the_units_of_the_reward() -> None:
    subject = LDPOneBitGP(epsilon=12.0, lower=0.0, upper=10.0, steps=200)
    with ledger_of(subject) as ledger:
        result = subject.run(problem(value=7.5), ledger, np.random.default_rng(0))
    assert result.summary["estimated mean of the recommended"] == pytest.approx(7.5, abs=0.7)


def test_a_rehearsal_finds_nothing() -> None:
    assert rules(LDPOneBitGP(steps=30)) == set()
    assert rules(LDPOneBitGP(steps=20, answers_per_user=2), "taipei-sellers") == set()


def test_a_rehearsal_finds_what_does_not_follow_from_the_bits() -> None:
    mistaken = type("Mistaken", (Gossip, LDPOneBitGP), {})
    assert rules(mistaken(steps=30)) == {"result-not-from-releases"}


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": 1e-30}, "epsilon"),
        ({"upper": -2.0}, "upper"),
        ({"lower": -1e308, "upper": 1e308}, "upper"),
        ({"lower": math.nan}, "lower"),
        ({"steps": 0}, "steps"),
        ({"answers_per_user": 1001}, "answers_per_user"),
    ],
)
def test_bad_fields_are_one_sentence(settings: dict[str, object], name: str) -> None:
    with pytest.raises(InputError, match=rf"^{name} is ") as error:
        LDPOneBitGP(**settings)
    assert str(error.value).endswith(".")
    assert "\n" not in str(error.value)


def test_findings_follow_the_configuration() -> None:
    assert LDPOneBitGP().findings() == ()
    (warning,) = LDPOneBitGP(bounds_are_public=False).findings()
    assert warning.rule == "data-dependent-bound"
    (note,) = LDPOneBitGP(epsilon=0.01).findings()  # c = 200, more than √1000
    assert note.rule == "cannot-learn"
    assert "6.32 half widths" in note.message
