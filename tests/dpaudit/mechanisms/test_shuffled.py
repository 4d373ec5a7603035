"""Shuffled reports against the paper's own pair, and against all numbers of ones."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from accounting_builders import plan, use
from mechanism_conformance import MechanismConformance, PlainSource
from scipy.special import gammaln
from scipy.stats import binom

from dpaudit.accounting import compose
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import (
    ApproximateBlackBox,
    Laplace,
    PureBlackBox,
    RandomizedResponse,
    Shuffled,
    SubsetSelection,
    UnaryEncoding,
)
from dpaudit.plan import (
    AddRemove,
    FixedSizeSampling,
    PoissonSampling,
    ReplaceOne,
    TrustModel,
    ZeroOut,
)

COIN = RandomizedResponse(0.5)
FEW = Shuffled(COIN, 6)


class TestShuffled(MechanismConformance):
    mechanism = FEW
    value = (0, 0, 0, 0, 0, 0)
    neighbour = (1, 0, 0, 0, 0, 0)
    attained = False
    unlike = Shuffled(RandomizedResponse(0.7), 6)
    bad_values = (math.nan, "a", None, 1, (0, 1), (0, 0, 0, 0, 0, 2), (0.5,) * 6)

    def mean(self):
        """Of the least report: 1 only if all are."""
        return 0.25**6

    def variance(self):
        return 0.25**6 * (1 - 0.25**6)

    def exact_delta(self, epsilon):
        here, there = (np.array(FEW.probabilities(v)) for v in (self.value, self.neighbour))
        sides = ((here, there), (there, here))
        return max(float(np.maximum(p - math.exp(epsilon) * q, 0).sum()) for p, q in sides)


def clones(reports: int, local: float, epsilon: float, share: float) -> float:
    """δ(ε) of (A + Δ, C + 1 − A − Δ) of Feldman, McMillan and Talwar, term by term.

    C ~ Bin(n − 1, share), A ~ Bin(C, 1/2), Δ ~ Bern(e^ε₀/(e^ε₀ + 1)) or its opposite.
    """
    odds, total = math.exp(local), 0.0
    numbers = np.arange(reports)
    for c in numbers[(mass := binom.pmf(numbers, reports - 1, share)) > 1e-13]:
        a = np.arange(c + 2.0)
        own = np.exp(gammaln(c + 2) - gammaln(a + 1) - gammaln(c + 2 - a) - c * math.log(2))
        p, q = own * (odds * a + c + 1 - a), own * (a + odds * (c + 1 - a))
        total += mass[c] * np.maximum(p - math.exp(epsilon) * q, 0).sum() / (c + 1) / (odds + 1)
    return total


def counted(reports: int, local: float, epsilon: float, ones: int = 0) -> float:
    """δ(ε) of binary response among others of whom so many have a one: the truth, from below."""
    lie = 1 / (math.exp(local) + 1)
    others = np.convolve(
        binom.pmf(np.arange(reports - ones), reports - 1 - ones, lie),
        binom.pmf(np.arange(ones + 1), ones, 1 - lie),
    )
    p = (1 - lie) * np.append(others, 0) + lie * np.append(0, others)
    q = lie * np.append(others, 0) + (1 - lie) * np.append(0, others)
    odds = math.exp(epsilon)
    return float(max(np.maximum(p - odds * q, 0).sum(), np.maximum(q - odds * p, 0).sum()))


@pytest.mark.parametrize(
    ("reports", "local"), [(2, 1.0), (5, 0.3), (40, 2.0), (300, 1.0), (1000, 3.0)]
)
def test_it_is_the_published_pair_rounded_up(reports, local):
    pair = Shuffled(PureBlackBox(local), reports).pair(1)
    share = 2 / (math.exp(local) + 1)
    for epsilon in np.linspace(0, local, 9)[:-1] * min(1, 8 / math.sqrt(reports)):
        published = clones(reports, local, epsilon, share)
        assert published <= float(pair.delta(epsilon)) * (1 + 1e-12)
        assert float(pair.delta(epsilon)) <= published * 1.003 + 1e-10
    assert pair.pure_epsilon == Fraction(local)


def test_ten_thousand_reports_cost_what_is_published():
    """0.11440, found by the paper's pair with 2/(e² + 1); with e⁻² it is 0.155, 36 % more."""
    found = compose(plan(use(Shuffled(PureBlackBox(2.0), 10**4), relation=ReplaceOne())))
    epsilon = found.epsilon(1e-6).upper
    assert epsilon == pytest.approx(0.114400, rel=1e-3)
    share = 2 / (math.exp(2) + 1)
    assert clones(10**4, 2.0, epsilon, share) <= 1e-6 <= clones(10**4, 2.0, epsilon * 0.995, share)


@pytest.mark.parametrize(("reports", "local"), [(3, 1.0), (12, 2.0), (60, 0.5)])
def test_binary_responses_cost_no_less_than_any_data_set(reports, local):
    pair = Shuffled(RandomizedResponse.calibrated(epsilon=local), reports).pair(1)
    for epsilon in np.linspace(0, local, 6)[:-1]:
        truth = max(counted(reports, local, epsilon, ones) for ones in range(reports))
        assert truth <= float(pair.delta(epsilon)) * (1 + 1e-9)
        assert epsilon or float(pair.delta(epsilon)) <= 1.7 * truth


@pytest.mark.parametrize(("k", "reports"), [(3, 4), (4, 3), (5, 3)])
def test_many_answers_cost_no_less_than_any_data_set(k, reports):
    """Every data set of the others, every multiset of reports."""
    response = RandomizedResponse(0.4, k)
    lie, truth = 0.4 / k, 0.6 + 0.4 / k
    pair = Shuffled(response, reports).pair(1)

    def law(answers):
        masses: dict[tuple[int, ...], float] = {}
        for told in product(range(k), repeat=reports):
            mass = math.prod(
                truth if one == own else lie for one, own in zip(told, answers, strict=True)
            )
            key = tuple(sorted(told))
            masses[key] = masses.get(key, 0.0) + mass
        return np.array([masses[key] for key in sorted(masses)])

    for rest in {tuple(sorted(one)) for one in product(range(min(k, 3)), repeat=reports - 1)}:
        p, q = law((0, *rest)), law((1, *rest))
        for epsilon in (0.0, 0.2, 0.6, 1.0):
            worst = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
            assert worst <= float(pair.delta(epsilon)) * (1 + 1e-9)


@pytest.mark.parametrize(
    "local",
    [UnaryEncoding(3, 0.2), UnaryEncoding(2, 0.3, 0.7), SubsetSelection(4, 0.5, 2),
     SubsetSelection(4, 0.2)],
    ids=repr,
)  # fmt: skip
def test_other_reports_cost_no_less_than_any_data_set(local):
    """Three reports of mechanisms whose laws overlap otherwise, every data set of the others."""
    rows = [np.array(local.probabilities(answer), dtype=float) for answer in range(local.k)]
    kinds = [tuple(sorted(one)) for one in product(range(len(rows[0])), repeat=3)]
    names = {kind: at for at, kind in enumerate(sorted(set(kinds)))}
    places = np.array([names[kind] for kind in kinds])
    pair = Shuffled(local, 3).pair(1)
    for rest in product(range(local.k), repeat=2):
        others = np.multiply.outer(rows[rest[0]], rows[rest[1]])
        p, q = (np.bincount(places, np.multiply.outer(rows[one], others).ravel()) for one in (0, 1))
        for epsilon in (0.0, 0.3, 0.8, 1.2):
            worst = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
            assert worst <= float(pair.delta(epsilon)) * (1 + 1e-9)


@pytest.mark.parametrize("odds", [1.3, math.e, 20.0])
def test_less_apart_is_less_in_convex_order(odds):
    """E(G − k)₊ of the docstring, for every α and k, against α = 1/(p + 1)."""

    def mean(apart, rise, level):
        rest = (1 - (odds + 1) * apart) / odds
        values = np.array([odds - rise, 1 - odds * rise, odds * (1 - rise), 0.0])
        masses = np.array([apart, apart, rest, 1 - 2 * apart - rest])
        return float(masses @ np.maximum(values - level, 0))

    for rise, apart, level in product(
        np.linspace(1, odds, 7),
        np.linspace(0, 1 / (odds + 1), 7),
        np.linspace(-(odds**2), odds, 60),
    ):
        assert mean(apart, rise, level) <= mean(1 / (odds + 1), rise, level) + 1e-12


def test_more_answers_and_more_reports_hide_more():
    def delta(mechanism):
        return float(mechanism.pair(1).delta(0.05))

    by_answers = [
        delta(Shuffled(RandomizedResponse.calibrated(epsilon=1.0, k=k), 2000)) for k in (2, 3, 20)
    ]
    by_reports = [delta(Shuffled(PureBlackBox(1.0), n)) for n in (1, 30, 1000, 3000, 10**5)]
    assert sorted(by_answers, reverse=True) == by_answers
    assert sorted(by_reports, reverse=True) == by_reports
    assert delta(Shuffled(PureBlackBox(1.0), 10**9)) < 1e-9
    assert by_reports[0] == pytest.approx(float(PureBlackBox(1.0).pair(1).delta(0.05)))


def law_of(law: Shuffled, value) -> dict[tuple[int, ...], float]:
    """Every order of the users, every report, of several questions: the truth."""
    lie, masses = law.local.p / law.local.k, {}
    asked = sorted(place % law.questions for place in range(law.reports))
    for order in permutations(range(law.reports)):
        own = [value[user][question] for user, question in zip(order, asked, strict=True)]
        for told in product(range(law.local.k), repeat=law.reports):
            mass = math.prod(
                lie + (1 - law.local.p) * (one == true) for one, true in zip(told, own, strict=True)
            )
            key = tuple(one for _, one in sorted(zip(asked, told, strict=True)))
            masses[key] = masses.get(key, 0.0) + mass / math.factorial(law.reports)
    return masses


@pytest.mark.parametrize(
    ("k", "reports", "questions"), [(2, 4, 2), (2, 4, 3), (2, 5, 2), (3, 3, 2), (3, 3, 3)]
)
def test_questions_that_nobody_knows_of_cost_no_more_than_one(k, reports, questions):
    """All pairs of records, and others who are alike or differ from question to question."""
    law = Shuffled(RandomizedResponse(0.4, k), reports, questions)
    pair = law.pair(1)
    records = list(product(range(2), repeat=questions))
    for rest in product((records[0], records[1], records[-1]), repeat=reports - 1):
        if list(rest) != sorted(rest):
            continue
        laws = [law_of(law, (record, *rest)) for record in records]
        keys = sorted(laws[0])
        masses = np.array([[each[key] for key in keys] for each in laws])
        for epsilon in (0.0, 0.2, 0.6, 1.0):
            for p, q in product(masses, repeat=2):
                worst = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
                assert worst <= float(pair.delta(epsilon)) * (1 + 1e-9)


def test_a_question_that_is_known_hides_nobody():
    """The only report about a question of known user: what one coin tells is beyond the pair."""
    law = Shuffled(RandomizedResponse(0.4), 2, 2)
    assert 0.8 - math.exp(0.6) * 0.2 > float(law.pair(1).delta(0.6)) * 1.2


@pytest.mark.parametrize("exact", [False, True])
def test_reports_of_several_questions_have_the_law_of_a_random_order(exact):
    """Of 40 000 draws, each frequency within 6 deviations: false alarm below 1e-7."""
    law, value = Shuffled(RandomizedResponse(0.4), 4, 3), [[0, 1, 0], [1, 1, 0], [0, 0, 0], [1] * 3]
    assert law.asked.tolist() == [0, 0, 1, 2]
    rng = np.random.default_rng(5)
    if exact:
        released = law.release_exactly(value, 1.0, 40_000, PlainSource(rng))
    else:
        released = law.release_many(value, 40_000, rng)
    expected = law_of(law, value)
    assert sum(expected.values()) == pytest.approx(1)
    for key, mass in expected.items():
        found = float((released == key).all(axis=1).mean())
        assert abs(found - mass) < 6 * math.sqrt(mass * (1 - mass) / 40_000)


def test_questions_that_cannot_be_asked_are_refused():
    several = Shuffled(COIN, 4, 2)
    assert Shuffled.parse(several.to_dict()) == several
    assert "questions" not in Shuffled(COIN, 4).to_dict()
    for local, questions, said in (
        (COIN, 5, "questions is 5; it must be at most the 4 reports"),
        (COIN, 0, "questions is 0"),
        (PureBlackBox(1.0), 2, "are not drawn here"),
    ):
        with pytest.raises((InputError, UnsupportedError), match=said):
            Shuffled(local, 4, questions)
    for value in ([0] * 4, [[0, 1]] * 3, [[0, 2]] * 4):
        with pytest.raises(InputError, match="value"):
            several.release(value, np.random.default_rng(0))
    with pytest.raises(UnsupportedError, match="two answers to one question"):
        several.probabilities([[0, 0]] * 4)
    ((first, second, _),) = several.worst_pairs()
    assert several.distance(*map(several.prepare, (first, second))) == 1


def test_reports_are_sorted_and_exact_ones_too():
    rng = np.random.default_rng(1)
    many = Shuffled(RandomizedResponse(0.5, 9), 50)
    value = rng.integers(9, size=50)
    released = many.release_many(value, 20, rng)
    assert (np.diff(released, axis=1) >= 0).all()
    assert sum(FEW.probabilities([0, 1, 0, 1, 1, 0])) == pytest.approx(1)
    assert FEW.log_density([[1, 0, 0, 0, 0, 0]], [0] * 6) == -math.inf


def test_what_a_shuffle_does_not_hide_is_refused():
    with pytest.raises(
        InputError, match="'add-remove'; the mechanism shuffled does not hide how many"
    ):
        use(FEW, relation=AddRemove())
    with pytest.raises(InputError, match="so declare randomized-response, or trust central"):
        replace(use(FEW, relation=ReplaceOne()), trust=TrustModel.LOCAL)
    use(FEW, relation=ZeroOut())
    use(FEW, relation=ReplaceOne(), sampling=FixedSizeSampling(6, 100))
    for sampling in (PoissonSampling(0.1), FixedSizeSampling(7, 100)):
        with pytest.raises(InputError, match="so declare fixed-size samples of 6"):
            use(FEW, relation=ReplaceOne(), sampling=sampling)
    for fields, said in (({"reports": 0}, "reports is 0"), ({"local": 3}, "local is 3")):
        with pytest.raises(InputError, match=said):
            Shuffled(**{"local": COIN, "reports": 3} | fields)
    with pytest.raises(InputError, match="local is laplace; it must protect a whole answer"):
        Shuffled(Laplace(1.0), 3)
    with pytest.raises(UnsupportedError, match="has no pure ε"):
        Shuffled(ApproximateBlackBox(1.0, 1e-6), 3).pair(1)
    with pytest.raises(UnsupportedError, match="two answers to one"):
        Shuffled(RandomizedResponse(0.5, 3), 4).probabilities([0] * 4)
    with pytest.raises(UnsupportedError, match="are not drawn here"):
        Shuffled(UnaryEncoding(3, 0.2), 4).release([0] * 4, np.random.default_rng(0))
    assert Shuffled(UnaryEncoding(3, 0.2), 4).pair(1).pure_epsilon < 2


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-15, 1e-12, 1e-11])
def test_an_epsilon_near_nothing_costs_no_more_than_it(epsilon):
    pair = Shuffled(PureBlackBox(epsilon), 10**6).pair(1.0)
    assert pair.pure_epsilon <= Fraction(epsilon)
    assert 0 <= float(pair.delta(0.0)) <= 2 * epsilon
