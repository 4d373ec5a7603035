"""The figures of claim, proof and attack."""

from dataclasses import replace

from dpaudit import Claim
from dpaudit.reporting.figures.privacy import figures


def test_figures_show_claim_proof_and_attack(certificates):
    curve, trade_off = figures(certificates["refuted"])
    labels = [key.label for key in curve.legend]
    assert any("guarantee: ε = 1, δ = 0" in label for label in labels)
    assert any("claim" in label for label in labels)
    assert any("attacked" in label for label in labels)
    assert "the strongest attack shows ε ≥ 1.93456" in curve.description
    assert "right at most 69.7 % of the time" in trade_off.description


def test_no_figures_where_nothing_is_known(certificates):
    assert figures(certificates["opaque"]) == ()
    assert figures(replace(certificates["unbounded"], claim=Claim(1.0))) == ()
