"""What every accountant is given: terms, orders, and what is proved of them."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from accounting_builders import plan, poisson, use

from dpaudit.accounting import (
    Accountant,
    AccountantName,
    Composition,
    CurvePoint,
    Guarantee,
    Interval,
    accountant_of,
    epsilon_after_rounds,
    guarantee,
)
from dpaudit.accounting.amplification import DirectedPair, PlainPair
from dpaudit.accounting.amplification.fixed_size import ReplacedPair
from dpaudit.accounting.amplification.known_participation import KnownPair
from dpaudit.accounting.amplification.poisson_pairs import AddedPair, RemovedPair
from dpaudit.accounting.orders import ORDERS, REAL, WHOLE
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
    Plan,
    Relation,
    ReplaceOne,
    Sampling,
    ZeroOut,
)

# The registry of accountants, and what every accountant inherits


class Linear(Composition):
    """ε = c (1 − δ)."""

    native = {}  # noqa: RUF012

    def __init__(self, slope: float) -> None:
        self.slope = slope

    def epsilon(self, delta: float) -> Interval:
        return Interval(None, self.slope * (1 - delta))

    def delta(self, epsilon: float) -> Interval:
        return Interval(None, max(0.0, 1 - epsilon / self.slope))


def test_a_width_is_that_of_both_ends() -> None:
    assert Interval(1.0, 3.0).width == 2.0
    assert Interval(math.inf, math.inf).width == 0.0
    assert Interval(None, 3.0).width is None


def test_arrays_of_any_shape_are_asked_one_by_one() -> None:
    asked = np.array([[0.0, 0.5], [0.25, 1.0]])
    assert Linear(4.0).epsilons(asked).tolist() == [[4.0, 2.0], [3.0, 0.0]]
    assert Linear(4.0).deltas(4 * asked).tolist() == [[1.0, 0.5], [0.75, 0.0]]
    assert Linear(4.0).epsilons(0.5).shape == ()
    assert not Linear(4.0).is_exact


def test_every_name_has_an_accountant_of_that_name() -> None:
    for name in AccountantName:
        assert accountant_of(name).kind == name
        assert accountant_of(str(name)) == accountant_of(name)
    assert set(Accountant.kinds()) >= {*AccountantName}


@pytest.mark.parametrize("name", ["pldd", "", "PLD", None, 3, ["pld"]])
def test_an_unknown_name_is_one_sentence(name: object) -> None:
    once = Plan.of(use(Laplace(1.0)))
    for door in (
        lambda: accountant_of(name),  # type: ignore[arg-type]
        lambda: guarantee(once, 0.0, name),  # type: ignore[arg-type]
        lambda: epsilon_after_rounds(once, 0.0, [1], name),  # type: ignore[arg-type]
    ):
        with pytest.raises(InputError, match=r"^accountant is .*(did you mean|must be one of)"):
            door()


def test_a_name_is_taken_once() -> None:
    with pytest.raises(
        InputError, match=r"accountant kind 'pld' already belongs to .*PLDAccountant; give"
    ):

        class Other(Accountant):
            kind = "pld"


def test_rounds_are_composed_one_number_after_the_other() -> None:
    found = accountant_of("pure").epsilon_after_rounds([use(Laplace(8.0), count=2)], 0.0, [1, 4])
    assert found.tolist() == [0.25, 1.0]


def test_orders_increase_through_real_ones_integers_and_powers_of_two() -> None:
    assert (np.diff(ORDERS) > 0).all()
    assert ORDERS[0] > 1
    assert REAL[-1] == 16
    assert WHOLE[0] == 17
    assert WHOLE[-1] == 1024
    assert ORDERS[REAL.size : REAL.size + len(WHOLE)].tolist() == list(WHOLE)
    assert np.log2(ORDERS[REAL.size + len(WHOLE) :]).tolist() == list(range(11, 25))


def test_no_two_neighbours_are_far_apart() -> None:
    gaps = np.diff(np.log(ORDERS - 1))
    assert gaps[ORDERS[1:] <= 1024].max() < 0.27


# Invocations in normal form


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
    with pytest.raises(UnsupportedError, match="needs the whole law of its loss"):
        require_law(ConcentratedBlackBox(0.1).pair(1))
    require_law(GaussianPair(1.0))


def test_a_black_box_of_another_distance_is_refused_by_every_accountant() -> None:
    wrong = use(ApproximateBlackBox(0.5, 1e-9), 2.0)
    for name in ("pure", "zcdp", "rdp", "moments", "pld", "best"):
        with pytest.raises(InputError, match="takes 0 or 1"):
            accountant_of(name).compose([wrong])


# What an accountant proves, as a record

RECORD = {
    "epsilon": None,
    "delta": 0.0,
    "accountant": "gaussian",
    "error_bound": None,
    "native": {"mu": 2.0, "reason": "unbounded"},
    "curve": [[0.5, 0.25], [3.0, 1e-9]],
    "compared": {"gaussian": None, "rdp": 7.5},
}


def test_records_keep_their_keys_and_write_infinity_as_null() -> None:
    proved = Guarantee.from_dict(RECORD)
    assert proved.epsilon == proved.compared["gaussian"] == math.inf
    assert proved.curve[1] == CurvePoint(3.0, 1e-9)
    assert proved.accountant is AccountantName.GAUSSIAN
    assert json.dumps(proved.to_dict()) == json.dumps(RECORD)


def test_what_is_proved_comes_back_equal() -> None:
    for proved in (
        guarantee(plan(use(Gaussian(2.0), count=3)), 1e-6),
        guarantee(plan(use(Laplace(2.0)))),
        guarantee(plan(use(Gaussian(2.0)))),
    ):
        record = json.loads(json.dumps(proved.to_dict()))
        assert Guarantee.from_dict(record) == proved
        assert type(record["accountant"]) is str


def test_an_accountant_that_is_not_installed_can_be_read_about() -> None:
    proved = Guarantee.from_dict(RECORD | {"accountant": "of-another-package"})
    assert proved.accountant == "of-another-package"
    assert proved.to_dict()["accountant"] == "of-another-package"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"epsilon": -1.0}, "epsilon is -1.0"),
        ({"epsilon": math.nan}, "epsilon is nan"),
        ({"delta": 1.0}, "delta is 1.0"),
        ({"accountant": ""}, "accountant is ''"),
        ({"accountant": 3}, "accountant is 3"),
        ({"error_bound": -1.0}, "error_bound is -1.0"),
        ({"curve": [[1.0]]}, r"curve has the point \[1.0\]"),
        ({"curve": [1.0]}, "curve has the point 1.0"),
        ({"curve": [[1.0, -0.5]]}, "delta is -0.5"),
        ({"curve": 5}, "curve is 5"),
        ({"ratio": 1.0}, "unknown key 'ratio'"),
    ],
)
def test_a_wrong_record_is_one_sentence(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Guarantee.from_dict(RECORD | fields)


@pytest.mark.parametrize("key", ["epsilon", "delta", "accountant", "error_bound"])
def test_a_missing_field_is_named(key: str) -> None:
    with pytest.raises(InputError, match=f"lacks the key '{key}'"):
        Guarantee.from_dict({name: value for name, value in RECORD.items() if name != key})
    with pytest.raises(InputError, match="it must be a table"):
        Guarantee.from_dict([])  # type: ignore[arg-type]


def test_a_guarantee_is_printed_in_a_line():
    found = guarantee(plan(use(Gaussian(1.0))), 1e-5)
    assert len(str(found)) < 80
    assert str(found).startswith(f"ε = {found.epsilon} at δ = 1e-05, by ")
    assert len(repr(found)) < 200
    assert "curve" not in repr(found)
