"""Real OpenDP measurements, by their own privacy maps."""

import pytest

from dpaudit import AddRemove, Plan, PrivacyUnit
from dpaudit.accounting import guarantee
from dpaudit.integrations.opendp import from_opendp_measurement

dp = pytest.importorskip("opendp.prelude", reason="the extra 'secure' is not installed")
WHO = {"relation": AddRemove(), "unit": PrivacyUnit("row")}


@pytest.fixture
def domain():
    dp.enable_features("contrib")
    return dp.vector_domain(dp.atom_domain(T=float, nan=False))


def test_a_laplace_measurement_is_pure(domain):
    laplace = (domain, dp.l1_distance(T=float)) >> dp.m.then_laplace(scale=2.0)
    invocation = from_opendp_measurement(laplace, 1.0, count=3, **WHO)
    assert guarantee(Plan.of(invocation)).epsilon == 1.5


def test_a_gaussian_measurement_is_concentrated(domain):
    gaussian = (domain, dp.l2_distance(T=float)) >> dp.m.then_gaussian(scale=2.0)
    invocation = from_opendp_measurement(gaussian, 1.0, **WHO)
    assert invocation.mechanism.rho == 0.125
    by_curve = from_opendp_measurement(dp.c.make_zCDP_to_approxDP(gaussian), 1.0, delta=1e-5, **WHO)
    assert by_curve.mechanism.delta == 1e-5
    assert guarantee(Plan.of(invocation), 1e-5).epsilon <= by_curve.mechanism.epsilon * (1 + 1e-6)
