"""What the locally private algorithms declare, what they charge, what they let through."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from crowds import ALGORITHMS, Crowd, ledger_of, make, problem, run
from rehearsals import Gossip, rules
from subject_conformance import SubjectConformance

from dpaudit import guarantee
from dpaudit.base.errors import InputError, PlanMismatchError
from dpaudit.mechanisms import Laplace, RandomizedResponse
from dpaudit.plan import PrivacyUnit, ReplaceOne, TrustModel
from private_bo.local import LDPATAGPUCB, LDPTGPUCB, LDPMoMAGPUCB, LDPOneBitGP

EVERY = (*ALGORITHMS, LDPOneBitGP)


class OtherFifth(Crowd):
    """The same people, but that the fifth answers at the end of the range."""

    def respond(self, index, rng):
        response = super().respond(index, rng)
        return replace(response, value=-2.0) if self.asked == 5 else response


class LocalConformance(SubjectConformance):
    def data(self):
        return problem()

    def neighbour(self):
        return replace(problem(), rewards=OtherFifth())

    def bad_data(self):
        yield []
        for value in (math.nan, math.inf, np.zeros(2), "one", [None]):
            yield problem(value=value)


class TestLDPATA(LocalConformance):
    subject = make(LDPATAGPUCB, epsilon=20.0)


class TestLDPTGP(LocalConformance):
    subject = make(LDPTGPUCB, epsilon=20.0)


class TestLDPMoMA(LocalConformance):
    subject = make(LDPMoMAGPUCB, epsilon=20.0)


class TestOneBit(LocalConformance):
    subject = LDPOneBitGP(epsilon=1.0, steps=12)

    def data(self):
        return problem(value=2.0)

    def neighbour(self):
        return replace(problem(), rewards=OtherFifth(value=2.0))


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_plan_of_the_defaults(kind: type) -> None:
    (invocation,) = kind().plan().invocations
    assert invocation.mechanism == Laplace(scale=4.0, clip=(-2.0, 2.0))
    assert invocation.sensitivity == 4.0
    assert invocation.unit == PrivacyUnit("response")
    assert invocation.relation == ReplaceOne()
    assert invocation.trust is TrustModel.LOCAL
    assert invocation.count == 1
    assert invocation.sampling is None
    assert invocation.group is None
    # 3 whole epochs of k = ⌈24 ln(4e·1000/0.1)⌉ = 279
    assert invocation.total == (837 if kind is LDPMoMAGPUCB else 1000)
    assert invocation.mechanism.pair(4.0).pure_epsilon == 1.0


@pytest.mark.parametrize("kind", ALGORITHMS)
@pytest.mark.parametrize("answers", [2, 3])
@pytest.mark.parametrize("epsilon", [1.0, 0.1, 0.3])
def test_claim_counts_the_answers_of_a_user(kind: type, answers: int, epsilon: float) -> None:
    subject = make(kind, epsilon=epsilon, answers_per_user=answers)
    (invocation,) = subject.plan().invocations
    assert (invocation.count, invocation.unit) == (answers, PrivacyUnit("user"))
    claim = subject.claim()
    assert claim.delta == 0.0
    exact = answers * Fraction(epsilon)
    assert exact <= Fraction(claim.epsilon) <= exact * (1 + Fraction(1, 2**51))
    if epsilon == 1.0:
        assert claim.epsilon == answers
    # what the pure accountant adds up never exceeds the claim
    proved = Fraction(4.0) / Fraction(invocation.mechanism.scale) * answers
    assert proved <= claim.epsilon


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_run_releases_what_was_planned(kind: type) -> None:
    subject = make(kind)
    data = problem()
    with ledger_of(subject) as ledger:
        result = subject.run(data, ledger, np.random.default_rng(0))
    assert len(ledger) == 12
    assert data.rewards.asked == 12  # type: ignore[attr-defined]
    assert {entry.unit for entry in ledger} == {f"user {i}" for i in range(1, 13)}
    (spent,) = ledger.spent().invocations
    assert (spent.count, spent.total) == (1, 12)
    regret = result.for_owner.series["cumulative regret"]
    assert len(regret) == 12
    assert result.for_owner.summary["final regret"] == regret[-1]
    assert result.to_dict()["summary"]["responses"] == 12


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize(("answers", "words"), [(1, "charged that often"), (2, "for one user")])
def test_a_user_answers_no_more_than_declared(kind: type, answers: int, words: str) -> None:
    subject = make(kind, answers_per_user=answers)
    with pytest.raises(PlanMismatchError, match=words), ledger_of(subject) as ledger:
        subject.run(problem(name="ann"), ledger, np.random.default_rng(0))
    assert len(ledger) == answers


@pytest.mark.parametrize("kind", EVERY)
def test_learner_sees_only_clipped_rewards(kind: type) -> None:
    width = {} if kind is LDPOneBitGP else {"width_multiplier": 0.01}
    subject = make(kind, steps=60, epsilon=10.0, **width)
    at_the_end = run(subject, problem(value=2.0))
    assert run(subject, problem(value=1e9)) == at_the_end
    assert run(subject, problem(value=-1e9)) == run(subject, problem(value=-2.0)) != at_the_end


BAD = [
    ("epsilon", -1.0),
    ("epsilon", 0),
    ("epsilon", math.nan),
    ("epsilon", math.inf),
    ("epsilon", "1"),
    ("epsilon", True),
    ("epsilon", 1e-308),
    ("reward_bound", 0.0),
    ("reward_bound", math.inf),
    ("noise_bound", -0.1),
    ("steps", 0),
    ("steps", 10.0),
    ("confidence", 0.0),
    ("confidence", 1.0),
    ("dictionary_accuracy", 1.0),
    ("regularisation", 0.0),
    ("answers_per_user", 0),
    ("answers_per_user", 13),
    ("width_multiplier", 0.0),
    ("bounds_are_public", "yes"),
]
OWN = [
    (LDPMoMAGPUCB, {"plays_per_epoch": 0}),
    (LDPMoMAGPUCB, {"plays_per_epoch": 2.5}),
    (LDPMoMAGPUCB, {"moment": 0.0}),
    (LDPMoMAGPUCB, {"moment": 1.5}),
    (LDPMoMAGPUCB, {"steps": 200, "plays_per_epoch": None}),
    (LDPMoMAGPUCB, {"steps": 9, "plays_per_epoch": 10}),
    (LDPOneBitGP, {"epsilon": 0.0}),
    (LDPOneBitGP, {"epsilon": 1e-30}),
    (LDPOneBitGP, {"upper": -2.0}),
    (LDPOneBitGP, {"upper": 1e308, "lower": -1e308}),
    (LDPOneBitGP, {"lower": math.nan}),
    (LDPOneBitGP, {"steps": 0}),
    (LDPOneBitGP, {"answers_per_user": 1001}),
]
WRONG = [(kind, {name: value}) for kind in ALGORITHMS for name, value in BAD] + OWN


@pytest.mark.parametrize(("kind", "settings"), WRONG)
def test_bad_fields_are_one_sentence(kind: type, settings: dict[str, object]) -> None:
    name, *_ = settings
    tiny = {"reward_bound": 1e10} if kind in ALGORITHMS and settings[name] == 1e-308 else {}
    with pytest.raises(InputError, match=rf"^{name} is ") as error:
        make(kind, **settings, **tiny)
    assert str(error.value).endswith(".")
    assert "\n" not in str(error.value)


def test_findings_follow_the_configuration() -> None:
    learns = {"plays_per_epoch": 10, "width_multiplier": 0.05}
    (note,) = LDPMoMAGPUCB(**learns).findings()
    assert note.rule == "off-theorem"
    assert "k is 10, not 279" in note.message
    assert "0.05 times" in note.message
    warning, _ = LDPTGPUCB(bounds_are_public=False, width_multiplier=0.01).findings()
    assert (warning.rule, str(warning.severity)) == ("data-dependent-bound", "warning")
    assert "bound B and the noise bound R are statistics" in warning.message


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_settings_that_cannot_learn_are_a_finding(kind: type) -> None:
    (note,) = kind().findings()
    assert (note.rule, str(note.severity)) == ("cannot-learn", "note")
    rounds = 3 if kind is LDPMoMAGPUCB else 1000
    assert f"after {rounds} rounds" in note.message
    assert "single epoch" not in note.message


def test_one_epoch_cannot_learn_however_narrow() -> None:
    subject = LDPMoMAGPUCB(steps=19, plays_per_epoch=10, width_multiplier=1e-3)
    (note,) = (each for each in subject.findings() if each.rule == "cannot-learn")
    assert "asked about one point, in a single epoch. Privacy" in note.message


@pytest.mark.parametrize("answers", [1, 2])
def test_audit_pairs_are_released_as_declared(answers: int) -> None:
    subject = LDPTGPUCB(answers_per_user=answers)
    rng = np.random.default_rng(0)
    pairs = subject.audit_pairs()
    assert any(np.max(np.abs(pair.x_prime)) > 2.0 for pair in pairs)
    for pair in pairs:
        for data in (pair.x, pair.x_prime):
            released = subject.audit_release(data, 4000, rng)
            assert released.shape == ((4000,) if answers == 1 else (4000, 2))
            # seven standard errors of a mean of Laplace(4): false alarm below 1e-10
            bound = 7 * 4 * math.sqrt(2 / 4000)
            assert np.abs(released.mean(axis=0) - np.clip(data, -2, 2)).max() < bound


def test_audit_refuses_a_transcript_of_another_size() -> None:
    with pytest.raises(InputError, match="data has shape"):
        LDPTGPUCB(answers_per_user=2).audit_release(1.0, 5, np.random.default_rng(0))


def test_unknown_data_is_one_sentence(tmp_path) -> None:
    subject = LDPTGPUCB()
    rng = np.random.default_rng(0)
    for source in ("nowhere", "", str(tmp_path / "x.csv"), str(tmp_path / "x.mat")):
        with pytest.raises(InputError) as error:
            subject.load(source, rng)
        assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="data is a list"):
        subject.run([], ledger_of(subject), rng)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", EVERY)
def test_a_rehearsal_finds_nothing(kind: type) -> None:
    assert rules(make(kind, steps=30)) == set()


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_a_rehearsal_finds_a_reward_that_is_not_clipped(kind: type) -> None:
    class Unclipped(kind):  # type: ignore[misc, valid-type]
        @property
        def mechanism(self) -> Laplace:
            return Laplace(super().mechanism.scale)

    assert rules(Unclipped(**{**vars(make(kind, steps=30))})) == {"sensitivity-understated"}


@pytest.mark.parametrize("kind", EVERY)
def test_a_rehearsal_finds_a_regret_that_is_published(kind: type) -> None:
    mistaken = type("Mistaken", (Gossip, kind), {})
    assert rules(mistaken(**vars(make(kind, steps=30)))) == {"result-not-from-releases"}


def test_every_answer_of_a_recorded_seller_is_replaced() -> None:
    assert rules(LDPOneBitGP(steps=20, answers_per_user=2), "taipei-sellers") == set()
    subject = LDPTGPUCB(steps=200, answers_per_user=3)
    assert rules(subject, "taipei-sellers") == set()
    data = subject.load("taipei-sellers", np.random.default_rng(0))
    (first, *_) = subject.neighbours(data, np.random.default_rng(0))
    rng, answers = np.random.default_rng(0), []
    while first.data.available[0]:
        answers.append(first.data.respond(0, rng))
    own = [each.value for each in answers if each.user == answers[0].user]
    assert own == [subject.clip_bound] * 3
    assert [each.value for each in answers].count(subject.clip_bound) == 3


def test_tuned_epochs_need_not_fill_the_horizon() -> None:
    assert LDPMoMAGPUCB(plays_per_epoch=10).plan().invocations[0].total == 1000
    assert LDPMoMAGPUCB(plays_per_epoch=3).plan().invocations[0].total == 999


@pytest.mark.parametrize("kind", [LDPATAGPUCB, LDPTGPUCB])
def test_recorded_sellers_are_charged_for_every_answer(kind: type) -> None:
    subject = kind(steps=740, answers_per_user=2)  # all answers that the 370 sellers can give
    data = subject.load("taipei-sellers", np.random.default_rng(0))
    with ledger_of(subject) as ledger:
        subject.run(data, ledger, np.random.default_rng(0))
    charges = Counter(entry.unit for entry in ledger)
    assert len(charges) == 370
    assert set(charges.values()) == {2}
    (spent,) = ledger.spent().invocations
    assert (spent.count, spent.total) == (2, 740)
    assert not data.available.any()


def test_moma_plays_recorded_sellers_where_a_whole_epoch_is_left() -> None:
    subject = LDPMoMAGPUCB(steps=100, plays_per_epoch=5)
    data = subject.load("taipei-sellers", np.random.default_rng(0))
    with ledger_of(subject) as ledger:
        subject.run(data, ledger, np.random.default_rng(0))
    assert len({entry.unit for entry in ledger}) == 100


def test_moma_learns() -> None:
    """At an ε that leaves signal, the mean of 8 runs is far below uniform play."""
    relative = []
    for seed in range(8):
        subject = LDPMoMAGPUCB(epsilon=8.0, plays_per_epoch=5, width_multiplier=0.03)
        data = subject.load("synthetic-se", np.random.default_rng(seed))
        regret = run(subject, data, seed)
        relative.append(regret[-1] / (1000 * (data.f.max() - data.f.mean())))
    assert np.mean(relative) < 0.5


ASYMMETRIC = LDPOneBitGP(epsilon=0.5, lower=1.0, upper=5.0, steps=12)


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


def test_findings_follow_the_configuration_one_bit() -> None:
    assert LDPOneBitGP().findings() == ()
    (warning,) = LDPOneBitGP(bounds_are_public=False).findings()
    assert warning.rule == "data-dependent-bound"
    (note,) = LDPOneBitGP(epsilon=0.01).findings()  # c = 200, more than √1000
    assert note.rule == "cannot-learn"
    assert "6.32 half widths" in note.message
