from __future__ import annotations

import inspect
import math
import re
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from accounting_builders import plan, poisson, use
from accounting_truths import exact_gaussian_delta
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit import Claim, Verdict
from dpaudit.accounting import Interval, accountant_of, compose, guarantee, privacy_curve
from dpaudit.accounting.accountant import upper_ends
from dpaudit.base.errors import InputError
from dpaudit.certificate import SubjectRecord, certify
from dpaudit.mechanisms import (
    BinaryTree,
    ContinualGaussian,
    ContinualLaplace,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    GaussianHistogram,
    HonakerTree,
    IndividualGaussian,
    Laplace,
    Mechanism,
    PureBlackBox,
    RandomizedResponse,
    StableHistogram,
    TruncatedLaplace,
)
from dpaudit.plan import (
    AddRemove,
    FixedSizeSampling,
    PoissonSampling,
    RandomAllocation,
    ReplaceOne,
    TruncatedPoissonSampling,
    WithReplacementSampling,
    ZeroOut,
)

EPSILONS = [1e-300, 1e-3, 1.0, 30.0, 700.0, 730.0, 740.0, 760.0, 1000.0, 2000.0, 1e5]


def mechanism_of(kind: type[Mechanism], epsilon: float) -> Mechanism:
    if kind is DiscreteLaplace:
        return DiscreteLaplace(min(1 / epsilon, 1e15))
    if kind is RandomizedResponse:
        # The lie p/2 must be a float, hence no ε above 740 or so.
        return RandomizedResponse(2 / (math.exp(min(epsilon, 700.0)) + 1))
    return kind(epsilon)  # type: ignore[call-arg]


def least_epsilon_of_two_outputs(epsilon: float, delta: float) -> float:
    """The root of δ = P − e^x Q, with masses P = 1/(1 + e^-ε) and Q = e^-ε P."""
    if delta == 0:
        return epsilon
    return max(0.0, epsilon + math.log1p(-delta * (1 + math.exp(-epsilon))))


def least_epsilon_of_bounded_range(epsilon: float, delta: float) -> float:
    """The root of δ = (1 − e^((x−ε)/2))²/(1 − e^−ε)."""
    if delta == 0:
        return epsilon
    return max(0.0, epsilon + 2 * math.log1p(-math.sqrt(min(-delta * math.expm1(-epsilon), 0.99))))


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(
    "kind", [DiscreteLaplace, PureBlackBox, RandomizedResponse, ExponentialMechanism]
)
def test_no_accountant_proves_less_than_two_outputs_cost(
    kind: type[Mechanism], epsilon: float, delta: float
) -> None:
    mechanism = mechanism_of(kind, epsilon)
    exact = mechanism.pair(1.0).pure_epsilon
    bounded = kind is ExponentialMechanism
    truth = (least_epsilon_of_bounded_range if bounded else least_epsilon_of_two_outputs)(
        float(exact), delta
    )
    for accountant in ("pure", "rdp", "moments", "zcdp", "best"):
        found = guarantee(plan(use(mechanism)), delta, accountant).epsilon
        assert found >= truth * (1 - 1e-15), accountant
        if accountant in ("pure", "best"):
            assert found <= truth * (1 + 1e-12) + 1e-8


@pytest.mark.parametrize("sensitivity", [740.0, 1000.0])
@pytest.mark.parametrize("accountant", ["pure", "rdp", "moments", "zcdp", "best"])
def test_a_long_shift_costs_nearly_all_of_its_loss(accountant: str, sensitivity: float) -> None:
    # At output 0 and below, of P-mass 1/(1 + 1/e), the loss is the whole shift.
    truth = sensitivity + math.log1p(-1e-5 * (1 + math.exp(-1)))
    found = guarantee(plan(use(DiscreteLaplace(1.0), sensitivity)), 1e-5, accountant).epsilon
    assert truth * (1 - 1e-15) <= found <= sensitivity + 0.36


def test_masses_below_the_floats_keep_their_logarithms() -> None:
    near, far = DiscreteLaplace(1.0).pair(20), DiscreteLaplace(1e-3).pair(10)
    log_p, log_q = near.log_masses()  # type: ignore[attr-defined]
    assert np.allclose(log_p - log_q, near.losses)  # type: ignore[attr-defined]
    assert np.allclose(far.renyi([1.001, 2.0, 1e6]), 1e4, rtol=1e-12)
    assert far.delta(9_999.0) == pytest.approx(-math.expm1(-1), rel=1e-11)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(
    "mechanism",
    [DiscreteGaussian(1e-300), DiscreteGaussian(5e-324), DiscreteLaplace(5e-324), Laplace(5e-324)],
)
def test_noise_below_all_losses_that_floats_hold_is_infinite(
    mechanism: Mechanism, count: int, delta: float
) -> None:
    found = guarantee(plan(use(mechanism, count=count)), delta)
    assert found.epsilon == math.inf
    assert found.native["reason"]


@pytest.mark.parametrize("mechanism", [Laplace(1e300), DiscreteLaplace(1e15), PureBlackBox(1e-300)])
def test_tiny_losses_are_not_rounded_down_to_nothing(mechanism: Mechanism) -> None:
    once = plan(use(mechanism))
    exact = Fraction(mechanism.pair(1.0).pure_epsilon)
    for accountant in ("pure", "zcdp", "rdp", "best"):
        assert Fraction(guarantee(once, 0.0, accountant).epsilon) >= exact
    assert mechanism.pair(1.0).zcdp_rho > 0
    assert guarantee(plan(use(mechanism, sampling=poisson(0.1))), 0.0, "zcdp").epsilon > 0


def test_a_gaussian_shift_below_the_floats_is_still_a_shift() -> None:
    tiny = plan(use(Gaussian(1e300), 1e-20))
    assert guarantee(tiny, 0.0, "gaussian").epsilon == math.inf
    assert guarantee(tiny, 1e-5, "best").epsilon <= 1e-290


@pytest.mark.parametrize("accountant", ["zcdp", "rdp", "moments"])
def test_sampled_noise_too_small_is_infinite(accountant: str) -> None:
    sampled = plan(use(Gaussian(5e-324), sampling=poisson(0.1)))
    assert guarantee(sampled, 1e-5, accountant).epsilon == math.inf


def test_large_gaussian_losses_do_not_overflow() -> None:
    found = guarantee(plan(use(Gaussian(1e-150))), 1e-5, "rdp")
    assert found.epsilon == pytest.approx(5e299, rel=1e-4)


def trees() -> st.SearchStrategy[dict[str, Any]]:
    kinds = st.sampled_from([BinaryTree(1), BinaryTree(16), HonakerTree(8)])
    return st.fixed_dictionaries({"factorization": kinds, "participations": st.just(1)})


CALIBRATED: dict[type[Mechanism], st.SearchStrategy[dict[str, Any]]] = {
    Gaussian: st.just({}),
    IndividualGaussian: st.fixed_dictionaries({"steps": st.integers(1, 9)}),
    Laplace: st.just({}),
    TruncatedLaplace: st.just({}),
    RandomizedResponse: st.fixed_dictionaries({"k": st.sampled_from([2, 3, 2**53])}),
    ContinualGaussian: st.builds(lambda a, b: a | {"symmetric": b}, trees(), st.booleans()),
    ContinualLaplace: trees(),
}
ENDS = [0.0, 5e-324, 1e-310, 1e-16, 1e-3, 1.0, 745.0, 1000.0, 2000.0, 5000.0, 1e300, 1.7e308]
sizes = st.one_of(st.sampled_from(ENDS), st.floats(0, allow_infinity=False), st.floats(0, 50))
shares = st.one_of(
    st.sampled_from([5e-324, 1e-310, 1e-300, 1e-17, 1e-16, 1e-6, 1e-5, 1 - 2**-53]),
    st.floats(1e-300, 1, exclude_min=True, exclude_max=True),
    st.floats(-300, -1e-3).map(lambda power: 10.0**power),
)


def test_the_law_of_calibration_is_asked_of_all_that_are_calibrated() -> None:
    own = {kind for kind in Mechanism.kinds().values() if kind.__module__.startswith("dpaudit.")}
    with_others = {StableHistogram, GaussianHistogram}  # without a sensitivity; their own tests ask
    known = CALIBRATED.keys() | with_others
    assert {kind for kind in own if hasattr(kind, "calibrated")} == known


@pytest.mark.parametrize("kind", CALIBRATED, ids=lambda kind: kind.__name__)
@settings(max_examples=60, derandomize=True, deadline=None)
@given(data=st.data())
def test_what_calibration_returns_is_certified_at_its_target(
    kind: type[Mechanism], data: st.DataObject
) -> None:
    options: dict[str, Any] = dict(data.draw(CALIBRATED[kind]))
    options["epsilon"] = data.draw(sizes)
    approximate = "delta" in inspect.signature(kind.calibrated).parameters  # type: ignore[attr-defined]
    sensitivity = 1.0
    if kind is not RandomizedResponse:
        sensitivity = options["sensitivity"] = data.draw(st.sampled_from([1.0, 1e-20, 3.7, 1e20]))
    delta = data.draw(shares) if approximate else 0.0
    if kind is TruncatedLaplace:  # what it releases at more is no number at all
        delta = min(delta, 0.49)
    if approximate:
        options["delta"] = delta
    refusal = None
    try:
        mechanism = kind.calibrated(**options)  # type: ignore[attr-defined]
    except InputError as error:
        refusal = str(error)
    if refusal is not None:  # of nothing but the ends of the floats
        assert re.fullmatch(r"epsilon is .*\.", refusal)
        if kind is TruncatedLaplace:  # its bound would be nothing beside its scale
            assert options["epsilon"] <= max(1e-285 * sensitivity, 2.0**-28 * delta)
            return
        assert max(options["epsilon"], delta) <= 1e-285 * sensitivity
        return
    found = compose(plan(use(mechanism, sensitivity))).epsilon(delta)
    assert found.upper <= options["epsilon"]


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(2000.0, 1e-6), (5000.0, 1e-5), (0.0, 1e-16), (0.0, 1e-20), (1e-3, 1e-6), (1.0, 1e-310)],
)
def test_the_calibrated_gaussian_spends_its_target_and_no_more(
    epsilon: float, delta: float
) -> None:
    sigma = Gaussian.calibrated(epsilon=epsilon, delta=delta, sensitivity=1.0).sigma
    spent = exact_gaussian_delta(1 / mpmath.mpf(sigma), epsilon)
    assert (1 - 1e-10) * delta <= spent <= delta
    once = plan(use(Gaussian(sigma)))
    issued = certify(once, subject=SubjectRecord("plan"), claim=Claim(epsilon, delta))
    assert issued.verdict is Verdict.CERTIFIED


@pytest.mark.parametrize("accountant", ["zcdp", "rdp", "moments", "gaussian", "pld", "best"])
@pytest.mark.parametrize("epsilon", [1e3, 1e5, 1e8])
def test_a_delta_below_the_floats_is_not_called_none(accountant: str, epsilon: float) -> None:
    composed = accountant_of(accountant).compose([use(Gaussian(1.0))])
    assert composed.delta(epsilon).upper > 0


def test_a_curve_beyond_its_window_has_no_lower_end_that_errors_make() -> None:
    sampled = use(Gaussian(1e30), 2.0, count=10**9, sampling=poisson(0.14))
    found = accountant_of("pld").compose([sampled]).delta(0.0)
    assert (found.lower or 0.0) <= 4e-27 <= found.upper


def test_a_mass_that_stands_for_what_was_cut_is_no_lower_end() -> None:
    cut = use(DiscreteGaussian(0.17))
    assert DiscreteGaussian(0.17).pair(1.0).p_infinite > 0  # type: ignore[attr-defined]
    for epsilon in (0.5, 20.0, 300.0):
        proved = accountant_of("best").compose([cut]).delta(epsilon)
        assert (proved.lower or 0.0) <= proved.upper
        assert (accountant_of("pld").compose([cut]).delta(1e5).lower or 0.0) == 0.0


@pytest.mark.parametrize(
    ("sampling", "relation"),
    [
        (PoissonSampling(0.1), AddRemove()),
        (PoissonSampling(0.1, rows=3), AddRemove()),
        (PoissonSampling(0.1, rows=3), ZeroOut()),
        (WithReplacementSampling(3, 100), AddRemove()),
        (WithReplacementSampling(3, 100), ReplaceOne()),
        (FixedSizeSampling(5, 100), ReplaceOne()),
        (PoissonSampling(0.1, contribution=1e200), ReplaceOne()),
        (TruncatedPoissonSampling(0.1, 5, 100, contribution=1e200), ReplaceOne()),
        (RandomAllocation(2), AddRemove()),
    ],
    ids=str,
)
@pytest.mark.parametrize("mechanism", [Gaussian(1e-200), Laplace(1e-200)])
def test_losses_beyond_floats_end_no_proof(mechanism, sampling, relation):
    one = use(mechanism, 1e200, relation, count=2, sampling=sampling)
    assert guarantee(plan(one), 1e-5).epsilon == math.inf
    for epsilon in (0.0, 1.0, 100.0):
        assert float(privacy_curve(plan(one))([epsilon])[0]) > 0.01


def test_laws_without_a_common_outcome_end_no_proof():
    """A shift beyond both ends of noise leaves no finite loss to compose."""
    apart = use(TruncatedLaplace(1e-60, 1e-60), 5e-59)
    sampled = use(Gaussian(1.0), 5e-59, sampling=PoissonSampling(0.1))
    for both in ((apart, sampled), (sampled, apart)):
        assert guarantee(plan(*both), 0.999).epsilon == math.inf
        assert compose(plan(*both), "pld").delta(3.0).upper == 1.0


def test_what_is_no_number_bounds_nothing():
    assert Interval(math.nan, math.nan) == Interval(None, math.inf)
    np.testing.assert_array_equal(upper_ends([1.0, math.nan]), [1.0, math.inf])
