"""Leaks in the bits are found; exact samplers and sound code have none."""

import numpy as np
import pytest
from examples import gaussian_invocation

from dpaudit import DiscreteLaplace, Gaussian, Laplace
from dpaudit.auditing.noise.floats import float_findings, lsb_event, repeats
from dpaudit.base.errors import InputError

LAPLACE = Laplace(1.0)
GAUSSIAN = Gaussian.calibrated(epsilon=1.0, delta=1e-5, sensitivity=1.0)


@pytest.mark.parametrize(
    ("mechanism", "probability"), [(LAPLACE, 0.2716), (GAUSSIAN, 0.0709)], ids=["laplace", "normal"]
)
def test_the_event_has_the_known_probabilities(mechanism, probability):
    rng = np.random.default_rng(0)
    size = 200_000
    seen = lsb_event(mechanism.release_many(0.0, size, rng)).mean()
    assert abs(seen - probability) < 5 * np.sqrt(probability / size)
    assert not lsb_event(mechanism.release_many(1.0, size, rng)).any()


def test_numpy_laplace_is_flagged_within_100_draws():
    for seed in range(30):
        report = float_findings(LAPLACE.release_many, epsilon=1.0, seed=seed)
        assert report.draws == 100
        assert [f.rule for f in report.findings] == ["float-lsb"]
        assert report.counts[1] == 0
    assert "p = " in report.findings[0].message


def test_numpy_normal_is_flagged_within_2000_draws():
    for seed in range(10):
        report = float_findings(GAUSSIAN.release_many, epsilon=1.0, delta=1e-5, seed=seed)
        assert report.findings
        assert report.draws <= 2000


def test_samplers_on_a_grid_have_no_finding():
    on_grid = float_findings(
        lambda x, n, rng: x + np.rint(rng.laplace(size=n) * 2**30) / 2**30,
        epsilon=1.0,
        draws=100_000,
    )
    assert on_grid.findings == ()
    assert on_grid.draws == 100_000
    assert on_grid.counts == (0, 0)
    assert float_findings(DiscreteLaplace(1.0).release_many, epsilon=1.0).findings == ()


def test_secure_noise_has_no_finding():
    pytest.importorskip("opendp", reason="the extra 'secure' is not installed")
    from dpaudit.ledger import SecureNoise

    noise = SecureNoise()
    for mechanism, delta in ((LAPLACE, 0.0), (GAUSSIAN, 1e-5)):
        call = gaussian_invocation(mechanism=mechanism)
        report = float_findings(
            lambda x, n, rng, call=call: noise.release_many(call, x, n),
            epsilon=1.0,
            delta=delta,
            draws=20_000,
        )
        assert report.findings == ()
        assert report.counts == (0, 0)
    draws = noise.release_many(gaussian_invocation(mechanism=LAPLACE), 0.0, 20_000)
    assert repeats(draws) == []


def test_outputs_must_be_numbers():
    with pytest.raises(InputError, match="must be"):
        float_findings(lambda x, n, rng: np.zeros((n, 2)), epsilon=1.0)
