"""The door of a private selection: one charge, a secret number of runs, the best one's output."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpaudit import (
    AddRemove,
    FloatNoise,
    Gaussian,
    Invocation,
    Laplace,
    Ledger,
    Plan,
    PrivacyUnit,
    SecureNoise,
    TrustModel,
)
from dpaudit.base.errors import ClosedLedgerError, InputError, PlanMismatchError
from dpaudit.ledger.samplers.runs import number_of_runs
from dpaudit.plan import NegativeBinomialRuns, PoissonRuns, PrivateSelection

FACTS = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)
FIT, SCORE = Gaussian(4.0), Laplace(2.0)
ONE = Plan.of(Invocation(FIT, 1.0, *FACTS, at="fit"), Invocation(SCORE, 1.0, *FACTS, at="score"))
ALARM = 1e-7


GEOMETRIC = NegativeBinomialRuns(0.2)


def plan_of(runs=GEOMETRIC, **facts) -> Plan:
    return Plan.of(Invocation(PrivateSelection(ONE, runs), 1.0, *FACTS, at="search", **facts))


def ledger_of(plan: Plan, seed: int = 0, **given) -> Ledger:
    return Ledger(plan, rng=np.random.default_rng(seed), **given)


def once(candidate, own):
    fit = own.release(FIT, 3.0 * candidate, at="fit")
    return own.release(SCORE, 5.0, at="score"), fit


def masses(runs) -> list[float]:
    """Of 0, 1, …, 60, by the recursion of the law's definition."""
    if isinstance(runs, PoissonRuns):
        return stats.poisson.pmf(np.arange(61), runs.mean).tolist()
    found = [1.0]
    for k in range(1, 4000):
        found.append(found[-1] * (1 - runs.gamma) * (k + runs.shape) / (k + 1))
    return [0.0, *(np.array(found[:60]) / sum(found)).tolist()]


@pytest.mark.parametrize(
    "runs",
    [
        NegativeBinomialRuns(0.2),
        NegativeBinomialRuns(0.1, 0.0),
        NegativeBinomialRuns(0.3, -0.6),
        NegativeBinomialRuns(0.4, 2.5),
        NegativeBinomialRuns(0.6, 3.0),
        PoissonRuns(0.3),
        PoissonRuns(2.7),
    ],
    ids=str,
)
def test_the_number_of_runs_has_the_declared_law(runs):
    """A χ² test of 20 000 draws: it alarms falsely with probability 1e-7."""
    below = random.Random(3).randrange
    drawn = Counter(number_of_runs(runs, below) for _ in range(20_000))
    expected = np.array(masses(runs)) * 20_000
    kept = expected > 10
    seen = np.array([drawn[k] for k in range(61)])
    assert not seen[np.array(masses(runs)) == 0].any()
    cells = np.append(seen[kept], 20_000 - seen[kept].sum())
    wanted = np.append(expected[kept], 20_000 - expected[kept].sum())
    if wanted[-1] < 1:
        cells, wanted = cells[:-1], wanted[:-1] * cells[:-1].sum() / wanted[:-1].sum()
    assert stats.chisquare(cells, wanted).pvalue > ALARM


def test_a_draw_asks_for_exact_chances():
    """All that is asked for are whole numbers below denominators, of the floats as they are."""
    asked: list[int] = []

    def below(bound: int) -> int:
        asked.append(bound)
        return 0

    assert number_of_runs(NegativeBinomialRuns(0.1), below) == 1
    assert asked == [Fraction(0.1).denominator]


def test_the_best_run_leaves_and_is_charged_once(tmp_path):
    journal = tmp_path / "j.jsonl"
    calls = []

    def run(candidate, own):
        calls.append((candidate, *once(candidate, own)))
        return calls[-1][1:]

    plan = plan_of(NegativeBinomialRuns(0.01))
    with ledger_of(plan, journal=journal) as ledger:
        best = ledger.select(run, [1, 2, 3], at="search")
        assert len(ledger) == 1
        assert ledger.spent() == plan
    assert len(calls) > 1
    assert (best.candidate, best.score, best.output) == max(calls, key=lambda each: each[1])
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [line.get("at") for line in lines if "at" in line] == ["search"]
    assert "run 1" not in journal.read_text()


def test_exact_noise_draws_runs_too():
    pytest.importorskip("opendp")
    plan = Plan.of(
        Invocation(
            PrivateSelection(
                Plan.of(Invocation(SCORE, 1.0, *FACTS, at="score")), NegativeBinomialRuns(0.5)
            ),
            1.0,
            *FACTS,
        )
    )
    with Ledger(plan, noise=SecureNoise()) as ledger:
        best = ledger.select(lambda _, own: (own.release(SCORE, 1.0), None))
    assert best.output is None
    assert math.isfinite(best.score)


def test_candidates_are_drawn_and_not_taken_in_turn():
    """1000 searches at 1/4 each: beyond 5.3 standard deviations with probability 1e-7."""
    counts = Counter()
    plan = plan_of(NegativeBinomialRuns(0.5), count=1000)
    with ledger_of(plan) as ledger:
        for _ in range(1000):
            first = []
            ledger.select(lambda each, own, first=first: (first.append(each), once(each, own))[1],
                          [0, 1, 2, 3], at="search")  # fmt: skip
            counts[first[0]] += 1
    for each in range(4):
        assert abs(counts[each] - 250) < 5.4 * math.sqrt(1000 * 3 / 16)


def test_a_poisson_number_may_be_none():
    with ledger_of(plan_of(PoissonRuns(1e-9))) as ledger:
        assert ledger.select(once, [1], at="search") is None


def test_a_run_that_fails_or_has_no_score_has_lost():
    numbers = iter(range(1000))

    def run(candidate, own):
        number, (_, fit) = next(numbers), once(1, own)
        if number == 0:
            raise ValueError("no result")
        return (float("nan") if number == 1 else 1.0), fit

    with ledger_of(plan_of(NegativeBinomialRuns(0.01))) as ledger:
        assert ledger.select(run, at="search").score == 1.0


def test_an_error_leaves_where_no_run_has_a_score():
    def run(candidate, own):
        once(1, own)
        raise ValueError("no result")

    with pytest.raises(ValueError, match="no result"), ledger_of(plan_of()) as ledger:
        ledger.select(run, at="search")
    assert len(ledger) == 1


def test_a_run_has_its_own_ledger_alone():
    ledger = ledger_of(plan_of())
    with pytest.raises(InputError, match="while another one is being made"):
        ledger.select(lambda _, own: (ledger.release(SCORE, 1.0, at="score"), None), at="search")
    ledger = ledger_of(plan_of(count=3))
    with pytest.raises(PlanMismatchError, match="not declared"):
        ledger.select(lambda _, own: (own.release(SCORE, 1.0, at="other"), None), at="search")
    with pytest.raises(PlanMismatchError, match="ran 0 times"):
        ledger.select(lambda _, own: (own.release(SCORE, 1.0, at="score"), None), at="search")


def test_a_ledger_of_a_run_is_closed_when_the_run_ends():
    kept = []

    def run(candidate, own):
        kept.append(own)
        return once(1, own)

    with ledger_of(plan_of()) as ledger:
        ledger.select(run, at="search")
    with pytest.raises(ClosedLedgerError):
        kept[0].release(SCORE, 1.0, at="score")


def test_what_is_no_selection_is_refused_before_it_is_charged():
    ledger = ledger_of(ONE)
    with pytest.raises(PlanMismatchError, match="is not a private selection"):
        ledger.select(once, [1], at="score")
    searching = ledger_of(plan_of())
    with pytest.raises(PlanMismatchError, match="use select"):
        searching.release(plan_of().invocations[0].mechanism, 1.0, at="search")
    with pytest.raises(InputError, match="candidates is empty"):
        searching.select(once, [], at="search")
    assert len(ledger) == len(searching) == 0


def test_no_more_searches_than_declared():
    with ledger_of(plan_of()) as ledger:
        ledger.select(once, [1], at="search")
        with pytest.raises(PlanMismatchError, match="charged that often"):
            ledger.select(once, [1], at="search")


def test_a_search_is_repeatable_by_its_seed():
    found = []
    for _ in range(2):
        with Ledger(plan_of(), noise=FloatNoise(np.random.default_rng(5))) as ledger:
            found.append(ledger.select(once, [1, 2, 3], at="search"))
    assert found[0] == found[1]
