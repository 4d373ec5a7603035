"""Invocations in normal form."""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction

import pytest
from accounting_builders import poisson, use

from dpaudit.accounting import accountant_of
from dpaudit.accounting.amplification import DirectedPair, PlainPair
from dpaudit.accounting.amplification.fixed_size import ReplacedPair
from dpaudit.accounting.amplification.known_participation import KnownPair
from dpaudit.accounting.amplification.poisson_pairs import AddedPair, RemovedPair
from dpaudit.accounting.terms import (
    attained,
    directed,
    merged,
    pure_sum,
    pure_total,
    require_law,
    slack_of,
    terms,
    unbounded,
    use_of,
)
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms import (
    ApproximateBlackBox,
    ConcentratedBlackBox,
    ExponentialMechanism,
    Gaussian,
    GaussianPair,
    Laplace,
    Opaque,
)
from dpaudit.mechanisms.continual import (
    BinaryTree,
    ContinualGaussian,
    ContinualLaplace,
)
from dpaudit.mechanisms.rounding import round_up
from dpaudit.plan import (
    AddRemove,
    FixedSizeSampling,
    Invocation,
    MetricBall,
    Relation,
    ReplaceOne,
    Sampling,
    ZeroOut,
)


def pairs(
    relation: Relation, sampling: Sampling | None = None
) -> tuple[DirectedPair, DirectedPair]:
    return directed(use(Gaussian(2.0), relation=relation, sampling=sampling))


def test_sampling_makes_directed_pairs_under_the_relation_that_it_is_proved_for() -> None:
    base, plain = GaussianPair(0.5), PlainPair(GaussianPair(0.5))
    tenth, fixed = poisson(0.1), FixedSizeSampling(1, 10)
    for relation in (AddRemove(), ReplaceOne(), ZeroOut(), MetricBall(2.0)):
        assert pairs(relation) == pairs(relation, poisson(1.0)) == (plain, plain)
        if relation != AddRemove():
            assert pairs(relation, FixedSizeSampling(7, 7)) == (plain, plain)
    for relation in (AddRemove(), ZeroOut()):
        assert pairs(relation, tenth) == (RemovedPair(base, 0.1), AddedPair(base, 0.1))
    replaced, same = pairs(ReplaceOne(), fixed)
    assert replaced == same == ReplacedPair(base, round_up(Fraction(1, 10)))


def test_what_else_is_sampled_costs_what_is_proved_of_it() -> None:
    base, tenth, fixed = GaussianPair(0.5), poisson(0.1), FixedSizeSampling(1, 10)
    twice, rate = GaussianPair(1.0), round_up(Fraction(1, 10))
    assert pairs(AddRemove(), fixed) == (RemovedPair(twice, rate), AddedPair(twice, rate))
    assert pairs(AddRemove(), FixedSizeSampling(7, 7)) == (PlainPair(twice), PlainPair(twice))
    assert pairs(ZeroOut(), fixed) == 2 * (ReplacedPair(twice, rate),)
    for relation in (ReplaceOne(), MetricBall(2.0)):
        assert pairs(relation, tenth) == 2 * (KnownPair(base, 0.1),)
    assert pairs(MetricBall(2.0), fixed) == 2 * (KnownPair(base, rate),)


@pytest.mark.parametrize(
    ("use_of_it", "known"),
    [
        (use(Gaussian(1.0), sampling=poisson(0.1)), True),
        (use(Gaussian(1.0), relation=ReplaceOne(), sampling=poisson(0.1)), False),
        (use(Gaussian(1.0), relation=ReplaceOne(), sampling=FixedSizeSampling(1, 3)), True),
        (use(Gaussian(1.0), sampling=FixedSizeSampling(3, 3)), False),
        (use(Gaussian(1.0), relation=ReplaceOne()), True),
        (use(ExponentialMechanism(1.0)), True),
        (use(ContinualGaussian(sigma=1.0, factorization=BinaryTree(8), participations=1)), False),
        (use(ContinualLaplace(scale=1.0, factorization=BinaryTree(8), participations=1)), False),
    ],
)
def test_lower_ends_are_those_of_what_is_attained(use_of_it: Invocation, known: bool) -> None:
    assert attained(terms([use_of_it])) is known
    for accountant in ("gaussian", "pure", "pld", "best"):
        with suppress(UnsupportedError):
            composed = accountant_of(accountant).compose([use_of_it])
            assert (composed.epsilon(1e-3).lower is not None) is known
            assert (composed.delta(0.5).lower is not None) is known


def test_equal_uses_are_merged_in_an_order_of_their_own() -> None:
    uses = [
        use(Laplace(2.0), count=3, at="a"),
        use(Gaussian(1.0), at="b"),
        use(Laplace(2.0), count=4, group="g", at="c"),
        use(Laplace(2.0), 0.5),
    ]
    found = merged(uses)
    assert sorted(count for _, count in found) == [1, 1, 7]
    assert [(use_of(each), count) for each, count in found] == [
        (use_of(each), count) for each, count in merged(uses[::-1])
    ]
    assert [part.count for part in terms(uses)] == [count for _, count in found]


def test_what_costs_nothing_is_left_out() -> None:
    assert terms([use(Gaussian(1.0), 0.0), use(Opaque("x", 1.0), 0.0)]) == ()


def test_failures_add_up_apart_and_are_amplified() -> None:
    box = ApproximateBlackBox(0.5, 2.0**-20)
    plain, sampled = terms([use(box, count=4)]), terms([use(box, count=4, sampling=poisson(0.25))])
    assert slack_of(plain) == Fraction(4, 2**20)
    assert slack_of(sampled) == Fraction(1, 2**20)
    assert plain[0].pair.pure_epsilon == Fraction(1, 2)
    assert slack_of(terms([use(Laplace(1.0))])) == 0


def test_pure_sums_are_exact_and_infinite_where_one_is() -> None:
    parts = terms([use(Laplace(10.0), count=3), use(Laplace(4.0), 2.0)])
    assert pure_total(parts) == 3 / Fraction(10.0) + Fraction(1, 2)
    assert pure_sum(parts) == round_up(pure_total(parts))
    both = terms([use(Laplace(10.0)), use(Gaussian(1.0), at="g")])
    assert pure_sum(both) == math.inf
    assert unbounded(both) == ["gaussian at 'g'"]


def test_what_has_no_pair_is_refused_by_name() -> None:
    opaque = use(Opaque("sorter", 1.0), at="sort")
    for door in (lambda: terms([opaque]), lambda: directed(opaque)):
        with pytest.raises(UnsupportedError, match=r"opaque at 'sort': .*without a proof"):
            door()
    with pytest.raises(UnsupportedError, match="needs the law of its loss"):
        require_law(ConcentratedBlackBox(0.1).pair(1))
    require_law(GaussianPair(1.0))


def test_a_black_box_of_another_distance_is_refused_by_every_accountant() -> None:
    wrong = use(ApproximateBlackBox(0.5, 1e-9), 2.0)
    for name in ("pure", "zcdp", "rdp", "moments", "pld", "best"):
        with pytest.raises(InputError, match="takes 0 or 1"):
            accountant_of(name).compose([wrong])
