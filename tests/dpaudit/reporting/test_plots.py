"""Figures for notebooks: the lines are those that are proved, and what cannot be drawn is said."""

import math

import numpy as np
import pytest
from accounting_builders import use
from audit_records import attack
from scipy.stats import norm

from dpaudit import (
    Claim,
    Gaussian,
    InputError,
    Laplace,
    Plan,
    UnsupportedError,
    certify,
    guarantee,
    plot_curve,
    plot_rounds,
    plot_trade_off,
)
from dpaudit.accounting import epsilon_after_rounds
from dpaudit.certificate import SubjectRecord

pyplot = pytest.importorskip("matplotlib.pyplot")


def plan(mechanism):
    return Plan.of(use(mechanism))


def audit(epsilon_lower, delta=1e-5):
    return attack(claim_epsilon=3.0, delta=delta, epsilon_lower=epsilon_lower)


@pytest.fixture(autouse=True)
def axes():
    pyplot.switch_backend("agg")
    yield pyplot.subplots()[1]
    pyplot.close("all")


def lines(axes):
    return {line.get_label(): line.get_xydata().T for line in axes.lines}


def names(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0])
def test_the_trade_off_of_a_gaussian_is_that_of_the_theorem(axes, sigma):
    """Φ(Φ⁻¹(1 − α) − 1/σ) (Dong, Roth and Su 2022, equation 6): close to it, and never above."""
    assert plot_trade_off(plan(Gaussian(sigma)), ax=axes) is axes
    alarms, misses = lines(axes)["proved"]
    known = norm.cdf(norm.isf(alarms) - 1 / sigma)
    assert (misses <= known + 1e-9).all()
    assert (misses >= known - 2e-3).all()


def test_the_line_of_a_guarantee_is_no_higher(axes):
    one = plan(Gaussian(1.0))
    plot_trade_off(one, ax=axes)
    plot_trade_off(guarantee(one, 1e-5), ax=axes, label="of its points")
    drawn = lines(axes)
    assert (drawn["of its points"][1] <= drawn["proved"][1] + 1e-12).all()
    assert names(axes) == ["coin toss", "proved", "of its points"]


def test_a_certificate_brings_its_claim_and_its_audits(axes):
    one = plan(Laplace(1.0))
    made = certify(one, subject=SubjectRecord("mine"), claim=Claim(2.0))
    made = made.with_audits([audit(epsilon_lower=0.9999999, delta=0.0)])
    plot_trade_off(made, ax=axes)
    claimed = "claim: ε = 2, δ = 0"
    assert names(axes) == ["coin toss", "proved", claimed, "attacked: ε ≥ 0.999999 at δ = 0"]
    plot_curve(made, ax=pyplot.subplots()[1])
    assert names(pyplot.gca()) == ["proved", claimed, "attacked: ε is here or larger"]


def test_the_curve_is_proved_and_falls(axes):
    plot_curve(plan(Gaussian(1.0)), ax=axes)
    epsilon, delta = lines(axes)["proved"]
    known = norm.cdf(0.5 - epsilon) - np.exp(epsilon) * norm.cdf(-0.5 - epsilon)
    assert (delta >= known * (1 - 1e-9)).all()
    assert (delta <= 1.3 * known).all()  # chords between three points a decade
    assert (np.diff(delta) < 0).all()
    assert axes.get_yscale() == "log"


def test_claims_and_lower_bounds_are_points_and_delta_0_is_at_the_edge(axes):
    bounds = [audit(epsilon_lower=each) for each in (0.5, None, math.inf, 0.0)]
    plot_curve(plan(Laplace(1.0)), claims=[Claim(2.0), Claim(1.0, 1e-20)], audits=bounds, ax=axes)
    drawn, floor = lines(axes), axes.get_ylim()[0]
    assert floor == 1e-21
    assert drawn["claim: ε = 2, δ = 0"].tolist() == [[2.0], [floor]]
    assert drawn["claim: ε = 1, δ = 1e-20"].tolist() == [[1.0], [1e-20]]
    assert drawn["attacked: ε is here or larger"].tolist() == [[0.5], [1e-5]]
    assert drawn["proved"][:, -1] == pytest.approx([1.0, floor])
    assert axes.get_xlim()[0] == 0 < 2 < axes.get_xlim()[1]


def test_rounds_are_those_of_the_accountant(axes):
    one = plan(Gaussian(5.0))
    plot_rounds(one, 1e-5, 30, ax=axes)
    plot_rounds(plan(Gaussian(2.0)), 1e-5, 40, ax=axes, label="less noise", accountant="zcdp")
    rounds, epsilons = lines(axes)["proved (rdp)"]
    assert rounds.tolist() == list(range(1, 31))
    assert epsilons.tolist() == epsilon_after_rounds(one, 1e-5, rounds).tolist()
    assert axes.get_ylim()[1] > lines(axes)["less noise (zcdp)"][1].max()
    assert axes.get_ylabel() == "ε at δ = 1e-05"


def test_axes_are_made_where_none_are_given(axes):
    assert plot_rounds(plan(Laplace(1.0)), 0.0) not in (None, axes)


def test_what_cannot_be_drawn_is_said(axes):
    nothing = certify(plan(Laplace(1.0)), subject=SubjectRecord("mine"))
    with pytest.raises(UnsupportedError, match="no finite ε is proved, claimed or attacked"):
        plot_curve(replaced(nothing), ax=axes)
    with pytest.raises(UnsupportedError, match="no finite ε is proved at δ = 0; give a larger"):
        plot_rounds(plan(Gaussian(1.0)), 0.0, ax=axes)
    with pytest.raises(InputError, match="rounds is 0"):
        plot_rounds(plan(Gaussian(1.0)), 1e-5, 0)
    assert not axes.lines


def replaced(certificate):
    return type(certificate)(**vars(certificate) | {"guarantee": None})
