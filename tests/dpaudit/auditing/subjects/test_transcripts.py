"""A whole adaptive algorithm, attacked through its ledger.

Runs that sample units are attacked by mixtures, which closed forms confirm.
"""

import numpy as np
import pytest
from examples import gaussian_invocation
from score_conformance import ScoreConformance

from dpaudit import (
    AddRemove,
    AuditPair,
    Claim,
    FixedSizeSampling,
    Gaussian,
    InputError,
    Invocation,
    Laplace,
    Plan,
    PoissonSampling,
    PrivacyUnit,
    ReplaceOne,
    TrustModel,
    UnsupportedError,
)
from dpaudit.accounting import compose
from dpaudit.auditing.replaying.recording import Routine
from dpaudit.auditing.replaying.replay import own_generator
from dpaudit.auditing.subjects.transcripts import (
    Hidden,
    ReplayScore,
    Transcripts,
    audit_transcript,
    find_hidden,
)

ROUNDS = 3
NOISE = Laplace(3.0)
PLAN = Plan.of(
    *(gaussian_invocation(mechanism=NOISE, at=f"round {t}") for t in range(1, ROUNDS + 1))
)
PAIR = AuditPair(0.0, 1.0)


def adaptive(factor):
    def run(data, ledger, rng):
        released, offset = 0.0, rng.normal()
        for t in range(1, ROUNDS + 1):
            released = ledger.release(
                NOISE, factor * data + np.sin(released) + offset, at=f"round {t}"
            )

    return Routine(PLAN, run)


def test_the_score_is_the_log_ratio_of_the_transcript():
    algorithm = adaptive(1.0)
    outputs = Transcripts(algorithm, seed=4)(0.0, 5, np.random.default_rng(0))
    assert outputs.shape == (5, 1 + ROUNDS)
    assert (outputs[:, 0] == ROUNDS).all()
    released = outputs[:, 1:]
    offset = own_generator(4).normal()
    previous = np.sin(np.column_stack([np.zeros(5), released[:, :-1]])) + offset
    expected = (np.abs(released - previous - 1) - np.abs(released - previous)).sum(axis=1) / 3.0
    scores = ReplayScore(algorithm, 0.0, 1.0, seed=4)(outputs)
    assert scores == pytest.approx(expected, abs=1e-12)
    assert np.abs(scores).max() <= 1 + 1e-12


def test_other_control_flow_is_told_apart_with_certainty():
    def run(data, ledger, rng):
        for t in range(1, ROUNDS + 1) if data < 1 else (1, 2):
            ledger.release(NOISE, 0.0, at=f"round {t}")

    score = ReplayScore(Routine(PLAN, run), 0.0, 1.0)
    expected = {ROUNDS: np.inf, 2: -np.inf, 1: 0.0}
    rows = [[length] + [0.0] * ROUNDS for length in expected]
    assert score(np.array(rows)).tolist() == list(expected.values())


def test_sensitivity_that_is_understated_twofold_is_refuted_and_the_sound_one_is_not():
    options = {"epsilon": 1.0, "seed": 1}
    wrong = audit_transcript(adaptive(2.0), PAIR, runs=600, **options)
    assert wrong.refuted
    record = audit_transcript(adaptive(1.0), PAIR, runs=300, **options)
    assert not record.refuted
    assert record.epsilon_lower > 0.2
    assert record.method == "white-box transcript likelihood ratio, by replay"


class TestReplayConforms(ScoreConformance):
    score = ReplayScore(adaptive(1.0), 2.0, 0.0)
    release = Transcripts(adaptive(1.0))
    pair = AuditPair(2.0, 0.0)
    holds = Claim(2.0)
    broken = Claim(0.3)
    runs = 300


STEPS, SIGMA, RATE, DELTA = 4, 1.2, 0.3, 1e-3
UNITS = 9
POISSON = PoissonSampling(RATE)
SAMPLED = Gaussian(SIGMA)
ROWS = {f"user {n}": value for n, value in enumerate(np.linspace(0.1, 1.0, UNITS))}
LEFT = {name: value for name, value in ROWS.items() if name != "user 5"}


def plan(sampling=POISSON, relation=None, sensitivity=1.0, steps=STEPS):
    facts = (PrivacyUnit("user"), relation or AddRemove(), TrustModel.CENTRAL)
    use = Invocation(SAMPLED, sensitivity, *facts, count=steps, at="sum", sampling=sampling)
    return Plan.of(use)


def sums(declared=None, factor=1.0, steps=STEPS, extra=None, state=False):
    """Sums of sampled rows, each with a multiple of the last release."""

    def run(rows, ledger, rng):
        released, values, seen = 0.0, np.array(list(rows.values())), 0.0
        for _ in range(steps):
            sample = set(ledger.sample(rows, at="sum"))
            if extra is not None:
                sample |= {n for n in range(len(rows)) if extra(rng)}
            total = factor * values[sorted(sample)].sum()
            seen += total if state else 0.0
            released = ledger.release(SAMPLED, total + 0.5 * released + seen, at="sum")

    return Routine(declared or plan(steps=steps), run)


def log_normal(x, mean):
    return -((x - mean) ** 2) / (2 * SIGMA**2)


def closed_form(outputs, value, steps=STEPS):
    """Σ ln(1 − q + q exp(…)), of sums of others that are drawn as the attack documents."""
    others, found = np.array(list(LEFT.values())), []
    for row in outputs:
        rng, last, total = np.random.default_rng(int(row[-1])), 0.0, 0.0
        for released in row[1 : 1 + steps]:
            base = others[rng.random(UNITS - 1) < RATE].sum() + 0.5 * last
            gain = log_normal(released, base + value) - log_normal(released, base)
            total, last = total + np.log(1 - RATE + RATE * np.exp(gain)), released
        found.append(total)
    return np.array(found)


@pytest.mark.parametrize("swap", [False, True])
def test_the_score_is_the_closed_form_of_the_mixtures(swap):
    algorithm, pair = sums(), AuditPair(*((LEFT, ROWS) if swap else (ROWS, LEFT)))
    hidden = find_hidden(algorithm, pair, 3)
    assert hidden == Hidden(5, UNITS)
    for data in (ROWS, LEFT):
        outputs = Transcripts(algorithm, 3, hidden=hidden)(data, 40, np.random.default_rng(1))
        scores = ReplayScore(algorithm, pair.x, pair.x_prime, 3, hidden)(outputs)
        expected = closed_form(outputs, ROWS["user 5"])
        assert scores == pytest.approx(-expected if swap else expected, abs=1e-9)


def test_subsets_of_fixed_size_are_those_that_couple_the_replaced_unit():
    """Of others in one order: the first m − 1 and the unit, or the first m."""
    sampling = FixedSizeSampling(3, UNITS)
    algorithm = sums(plan(sampling, ReplaceOne()))
    other = {**ROWS, "user 5": 0.0}
    hidden = find_hidden(algorithm, AuditPair(ROWS, other), 0)
    assert hidden.place == 5
    outputs = Transcripts(algorithm, 0, hidden=hidden)(ROWS, 30, np.random.default_rng(1))
    expected, rest = [], np.array(list(LEFT.values()))
    for row in outputs:
        rng, last, total = np.random.default_rng(int(row[-1])), 0.0, 0.0
        for released in row[1 : 1 + STEPS]:
            order = rng.permutation(UNITS - 1)
            few, all_three = rest[order[:2]].sum(), rest[order[:3]].sum()
            out = 2 / 3 * np.exp(log_normal(released, all_three + 0.5 * last))
            x, x_prime = (
                out + np.exp(log_normal(released, few + own + 0.5 * last)) / 3
                for own in (ROWS["user 5"], 0.0)
            )
            total, last = total + np.log(x / x_prime), released
        expected.append(total)
    assert ReplayScore(algorithm, ROWS, other, 0, hidden)(outputs) == pytest.approx(
        expected, abs=1e-9
    )


def test_the_samples_of_a_transcript_have_the_declared_law():
    """20 000 events of 0.3 for each of 9 units, within 5.3 standard deviations; fixed seed."""
    hidden, rng = Hidden(2, UNITS), np.random.default_rng(0)
    for sampling in (PoissonSampling(1 / 3), FixedSizeSampling(3, UNITS)):
        use = plan(sampling, ReplaceOne()).invocations[0]
        counts = np.zeros(UNITS)
        choose = hidden.choose(7, lambda rate: bool(rng.random() < rate))
        for _ in range(20_000):
            counts[choose(use, list(ROWS))] += 1
        assert np.abs(counts - 20_000 / 3).max() < 5.3 * np.sqrt(20_000 * 2 / 9)


def audited(algorithm, claim, **options):
    """A claim at DELTA, tested on one unit that is left out."""
    x_prime = {name: value for name, value in ROWS.items() if name != "user 8"}
    return audit_transcript(
        algorithm, AuditPair(ROWS, x_prime), epsilon=claim, delta=DELTA, runs=300, **options
    )


@pytest.mark.parametrize("seed", range(2))
def test_a_sampled_sum_is_not_refuted_and_the_bound_is_below_what_is_proved(seed):
    proved = compose(plan()).epsilon(DELTA).upper
    record = audited(sums(), proved, seed=seed, confidence=0.999999)
    assert not record.refuted
    assert record.epsilon_lower <= proved


def test_what_is_sampled_or_contributes_more_than_stated_is_refuted():
    """Always in the sample, where the claim is that of a rate of 0.1; and three contributions."""
    tenth, fifth = (compose(plan(PoissonSampling(q))).epsilon(DELTA).upper for q in (0.1, 0.2))
    always = sums(plan(PoissonSampling(1.0)))
    assert audited(always, tenth, seed=1).refuted
    thrice = sums(plan(PoissonSampling(0.2)), factor=3.0)
    assert audited(thrice, fifth, seed=1).refuted


@pytest.mark.parametrize("extra", [lambda rng: True, lambda rng: rng.random() < RATE])
def test_units_that_enter_unsampled_are_told(extra):
    with pytest.raises(InputError, match="although the unit is in no sample"):
        find_hidden(sums(extra=extra, steps=40), AuditPair(ROWS, {**ROWS, "user 8": 0.0}), 0)


def test_private_state_that_remembers_who_took_part_cannot_be_attacked():
    with pytest.raises(UnsupportedError, match="who took part in earlier releases"):
        find_hidden(sums(state=True), AuditPair(ROWS, LEFT), 0)


def test_a_run_that_draws_its_samples_itself_cannot_be_attacked():
    def run(rows, ledger, rng):
        for _ in range(STEPS):
            ledger.release(SAMPLED, sum(value for value in rows.values() if rng.random() < RATE))

    with pytest.raises(UnsupportedError, match=r"by ledger\.sample"):
        find_hidden(Routine(plan(), run), AuditPair(ROWS, LEFT), 0)


def test_only_samples_that_a_theorem_covers_are_attacked():
    algorithm = sums(plan(FixedSizeSampling(3, UNITS)))
    with pytest.raises(UnsupportedError, match="whose theorem does not say"):
        find_hidden(algorithm, AuditPair(ROWS, LEFT), 0)


@pytest.mark.parametrize("place", [0, 4, UNITS - 1])
@pytest.mark.parametrize("size", [1, 3, 8])
def test_the_replaced_unit_is_found_in_samples_of_fixed_size(place, size):
    algorithm = sums(plan(FixedSizeSampling(size, UNITS), ReplaceOne()))
    other = {**ROWS, list(ROWS)[place]: 0.0}
    assert find_hidden(algorithm, AuditPair(ROWS, other), 0) == Hidden(place, UNITS)


def test_who_samples_nobody_hides_nobody():
    assert find_hidden(sums(plan(None)), AuditPair(ROWS, LEFT), 0) is None
