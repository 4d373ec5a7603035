"""What a report shows: audits, comparisons, curves and growth."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from gaussian_truth import gaussian_delta, gaussian_epsilon
from guarantees import certificate_of
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

import dpaudit
from dpaudit import AuditPair, Gaussian, Laplace, Verdict
from dpaudit.accounting import AccountantName, CurvePoint, Guarantee
from dpaudit.auditing import audit_release
from dpaudit.base.errors import InputError
from dpaudit.base.numbers import up
from dpaudit.certificate import load_certificate
from dpaudit.interchange.dp_accounting import second_opinion
from dpaudit.reporting.curves import (
    best_odds,
    densify,
    growth,
    probability,
    proved_points,
    thin_series,
    trade_off,
)
from dpaudit.reporting.view import comparison, tally, view, views
from dpaudit.training.membership import audit_scores

# The one picture of what a report says


def test_every_audit_is_there(certificate):
    shown = view(certificate)
    assert [audit.record for audit in shown.audits] == list(certificate.audits)


def test_digest_is_that_of_the_record(certificate):
    assert view(certificate).record["digest"] == certificate.to_dict()["digest"]


def test_what_is_drawn_is_not_listed_as_a_fact(certificates):
    (audit,) = view(certificates["scripts"]).audits
    assert audit.figure is not None
    assert not any(name.startswith("roc") for name, _ in audit.facts)


def test_a_run_may_be_missing(certificates):
    shown = view(replace(certificates["certified"], run=None))
    assert (shown.summary, shown.series, shown.series_rows) == ((), (), ())


def test_results_of_a_run_are_rows_of_a_table(certificates, tmp_path):
    run = {"summary": {"visits": {"A1": 366, "A2": 252.5}, "best": [1, 2]}, "series": {}}
    made = replace(certificates["certified"], run=run)
    assert view(made).summary == (("best", "1, 2"), ("visits, A1", "366"), ("visits, A2", "252.5"))
    page = dpaudit.write_report(made, tmp_path / "r.html").read_text("utf-8")
    assert '<th scope="row"><bdi>visits, A1</bdi></th><td><bdi>366</bdi>' in page
    assert "| visits, A1 | 366 |" in dpaudit.write_report(made, tmp_path / "r.md").read_text(
        "utf-8"
    )


# Scales


def test_marks_stand_at_their_values(certificates):
    shown = view(certificates["certified"])
    proved, claimed = shown.guess.marks
    assert proved.place == pytest.approx(200 * (shown.headline.odds.proved - 0.5))
    assert claimed.place == pytest.approx(200 * (shown.headline.odds.claimed - 0.5))
    assert (proved.caption, claimed.caption) == ("proved: ≤ 69.7 %", "claimed: ≤ 73.2 %")
    attacked, proved, claimed = shown.epsilons.marks
    assert attacked.place == pytest.approx(91)
    assert proved.place == claimed.place == 100
    assert attacked.caption == "attacked: ε ≥ 0.91"
    assert shown.epsilons.bar == (attacked.place, 100)


def test_what_is_not_known_has_no_mark(certificates):
    for kind in ("bare", "hostile", "exceeded"):  # no attack, or one that no finite ε survives
        assert view(certificates[kind]).epsilons is None
    assert view(certificates["unbounded"]).guess.marks == ()
    (claimed,) = view(certificates["opaque"]).guess.marks
    assert claimed.caption.startswith("claimed")
    contradicted = view(certificates["refuted"]).epsilons
    assert contradicted.bar[0] > contradicted.bar[1]  # nothing between attack and proof is filled


def test_growth_is_drawn_where_it_is_finite(certificate):
    shown = view(certificate)
    assert (shown.growth is None) == (shown.growth_figure is None)


def test_an_opinion_is_shown_where_it_was_asked_for(certificates):
    several = (certificates["certified"], certificates["bare"])
    assert [shown.opinion for shown in views(several)] == [None, None]
    asked = [second_opinion(each) for each in several]
    assert [shown.opinion for shown in views(several, asked)] == [each.reason for each in asked]


# From an audit to its report in one call


def record(epsilon=1.0, shift=4.0, seed=0):
    members = np.random.default_rng(seed).random(300) < 0.5
    scores = np.random.default_rng(seed + 1).normal(shift * members)
    return audit_scores(scores, members, epsilon=epsilon, delta=1e-5, seed=seed)


def test_an_audit_is_reported_with_its_roc(tmp_path):
    page = dpaudit.write_report(record(), tmp_path / "r.html", "my model").read_text("utf-8")
    assert "An attack of one training with 300 canaries refutes the claim that my model" in page
    assert "Audit 1: hits against false alarms" in page
    assert dpaudit.write_report(record(), tmp_path / "c.json").exists()
    assert load_certificate(tmp_path / "c.json").audits == (record(),)


def verdict(what, folder):
    return load_certificate(dpaudit.write_report(what, folder / "verdict.json")).verdict


def test_the_strongest_of_several_audits_decides(tmp_path):
    assert verdict([record(shift=0.0), record()], tmp_path) is Verdict.REFUTED
    assert verdict(record(shift=0.0), tmp_path) is Verdict.UNPROVEN


def test_what_is_assumed_decides_nothing(tmp_path):
    beside = record(epsilon=2.0, shift=1.0)
    assert beside.details["if_independent"]["epsilon_lower"] > 2.0
    assert verdict(beside, tmp_path) is Verdict.UNPROVEN


def test_an_attack_on_neighbours_and_a_certificate_are_reported_too(tmp_path):
    half = Laplace(scale=0.5)
    found = audit_release(half.release_many, AuditPair(0.0, 1.0), epsilon=1.0, runs=500, seed=1)
    page = dpaudit.write_report(found, tmp_path / "a.md").read_text("utf-8")
    assert "runs on each of two neighbouring data sets refutes" in page
    certificate = load_certificate(dpaudit.write_report(found, tmp_path / "c.json"))
    assert dpaudit.write_report(certificate, tmp_path / "b.md").read_text("utf-8") == page


def test_a_printed_record_is_its_verdict():
    found = record()
    assert str(found).startswith("refuted: ε ≥ ")
    assert "where ε = 1 is claimed" in str(found)
    assert len(str(found).splitlines()) == 1
    assert "roc" not in repr(found)


@pytest.mark.parametrize("several", [[], [record(), record(epsilon=2.0)]])
def test_audits_of_one_claim_are_wanted(several, tmp_path):
    with pytest.raises(InputError, match="they must test the same one"):
        dpaudit.write_report(several, tmp_path / "r.md")


# Several certificates side by side


def test_rows_side_by_side(certificates):
    views = [view(certificates[kind]) for kind in ("certified", "exceeded", "refuted", "bare")]
    rows = comparison(views)
    assert [str(row["verdict"]) for row in rows] == [
        "certified",
        "unproven",
        "refuted",
        "certified",
    ]
    assert rows[0]["attacked"] == "ε ≥ 0.91 at δ = 0"
    assert rows[2]["attacked"] == "ε ≥ 1.93456 at δ = 0"
    assert rows[3]["attacked"] == "not attacked"
    assert rows[1]["claimed"] == "ε = 0.1, δ = 1e-05"
    assert [row["look"] for row in rows] == ["certified", "unproven", "refuted", "certified"]
    assert rows[2]["guess"] == rows[3]["claimed"] == "–"
    assert tally(views) == "4 reports: 1 refuted, 1 unproven, 2 certified."


# The loss over time, against closed forms

ROOT = 1e-13
"""How far the root of the closed form, which is searched for, may lie above the true one."""


def test_growth_in_closed_form():
    grown = growth(certificate_of(Gaussian(8.0), count=40))
    assert grown.within[0].uses == 1
    assert [step.runs for step in grown.within] == [0] * (len(grown.within) - 1) + [1]
    assert [step.uses for step in grown.beyond] == [80, 120, 200, 400]
    for step in (*grown.within, *grown.beyond):
        exact = gaussian_epsilon(math.sqrt(step.uses) / 8.0)
        assert exact - ROOT <= step.epsilon <= exact * (1 + 1e-6)


def test_growth_follows_the_order_of_the_plan():
    grown = growth(certificate_of(Laplace(1.0), Laplace(2.0), Laplace(4.0)))
    assert [step.epsilon for step in grown.within] == pytest.approx([1, 1.5, 1.75])
    assert [step.part for step in grown.within] == ["a part", "a part", "all of it"]
    assert grown.beyond[0].epsilon == pytest.approx(3.5)


def test_growth_ends_at_the_guarantee(certificates):
    for kind in ("certified", "exceeded", "scripts", "thousand"):
        made = certificates[kind]
        grown = growth(made)
        assert grown.within[-1].epsilon == made.guarantee.epsilon
        assert up(grown.within[-1].epsilon) == up(made.guarantee.epsilon)
        epsilons = [step.epsilon for step in (*grown.within, *grown.beyond)]
        assert all(a <= b * (1 + 1e-9) for a, b in pairwise(epsilons))
        assert len(epsilons) <= 20


# Curves between proved points, against the exact curves of two mechanisms


def gaussian_points(mu, number=40):
    return [CurvePoint(float(e), float(gaussian_delta(e, mu))) for e in np.linspace(0, 4, number)]


@pytest.mark.parametrize("number", [2, 5, 40])
def test_densified_is_never_below_the_truth(number):
    epsilon, delta = densify(gaussian_points(1.0, number))
    exact = gaussian_delta(epsilon, 1.0)
    assert (delta >= exact * (1 - 1e-12)).all()
    assert delta[0] == pytest.approx(exact[0])
    assert delta[-1] == pytest.approx(exact[-1])
    assert len(epsilon) == 1 + (number - 1) * 7


def test_densified_far_apart_does_not_overflow():
    epsilon, delta = densify([CurvePoint(0, 0.5), CurvePoint(5000, 0.0)])
    assert np.isfinite(epsilon).all()
    assert ((delta >= 0) & (delta <= 0.5)).all()


def test_trade_off_of_pure_privacy():
    """f(α) = max(1 − e^ε α, e^−ε (1 − α)) (Wasserman and Zhou 2010)."""
    rates = np.array([0, 0.1, 1 / (1 + math.e), 0.5, 1])
    found = trade_off([CurvePoint(1.0, 0.0)], rates)
    assert found == pytest.approx([1, 1 - 0.1 * math.e, 1 / (1 + math.e), 0.5 / math.e, 0])


def test_trade_off_of_the_gaussian_approaches_its_own_from_below():
    """G_μ(α) = Φ(Φ⁻¹(1 − α) − μ) (Dong, Roth and Su 2022, equation 6)."""
    rates = np.linspace(0.001, 0.999, 200)
    exact = ndtr(ndtri(1 - rates) - 1.0)
    found = trade_off(gaussian_points(1.0, 400), rates)
    assert (found <= exact + 1e-12).all()
    assert found == pytest.approx(exact, abs=2e-3)


def test_nothing_proved_bounds_nothing():
    assert (trade_off([], np.linspace(0, 1, 5)) == 0).all()
    assert best_odds([]) == 1


def test_best_odds_is_half_of_one_plus_the_total_variation():
    points = gaussian_points(1.0)
    assert best_odds(points) == pytest.approx((1 + 2 * ndtr(0.5) - 1) / 2)


def test_proved_points_leave_out_the_infinite_and_the_double():
    curve = (CurvePoint(0.5, 0.1), CurvePoint(1.0, 0.0))
    finite = Guarantee(1.0, 0.0, AccountantName.PURE, None, curve=curve)
    assert proved_points(finite) == curve
    assert proved_points(Guarantee(math.inf, 0.0, AccountantName.RDP, None, curve=curve)) == curve


@settings(derandomize=True, max_examples=100)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=3000))
def test_thinned_keeps_the_ends_and_the_extremes(values):
    rounds, kept = thin_series(values, most=50)
    assert len(kept) <= max(50, min(len(values), 50))
    assert (kept[0], kept[-1]) == (values[0], values[-1])
    assert (kept.min(), kept.max()) == (min(values), max(values))
    assert (np.diff(rounds) > 0).all()
    assert [values[int(r) - 1] for r in rounds] == kept.tolist()


@settings(derandomize=True, max_examples=200)
@given(st.floats(0, 50), st.floats(0, 1, exclude_max=True))
def test_probability_is_the_vertex_of_the_error_region(epsilon, delta):
    """The least sum of error rates of the (ε, δ) region, at its vertex, by mpmath."""
    with mpmath.workdps(40):
        grown = mpmath.exp(epsilon)
        vertex = (1 - mpmath.mpf(delta)) / (1 + grown)
        assert probability(epsilon, delta) == pytest.approx(float(1 - vertex), rel=1e-14)


def test_probability_without_overflow():
    assert probability(1e6, 0.5) == 1
