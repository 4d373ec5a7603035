"""Answers of the privacy label."""

from dataclasses import replace

from judged import answers, attack, made, simple, status

from dpaudit import (
    Laplace,
)
from dpaudit.mechanisms import Opaque, PureBlackBox
from dpaudit.reporting.checklists.model import Status


class TestLabel:
    def test_utility_needs_a_measured_run(self):
        plain = simple()
        assert status(plain, "label-utility") is Status.NOT_MET
        run = {"summary": {"answers": 3}, "series": {}}
        assert status(replace(plain, run=run), "label-utility") is Status.UNKNOWN
        run = {"summary": {"mean squared error": 3}, "series": {}}
        assert status(replace(plain, run=run), "label-utility") is Status.MET

    def test_mechanism_must_be_explained(self):
        assert status(made(Laplace(1.0)), "label-mechanism") is Status.MET
        for mechanism in (Opaque("vendor", 1.0), PureBlackBox(1.0)):
            certificate = made(mechanism, delta=0.0)
            assert status(certificate, "label-mechanism") is Status.NOT_MET

    def test_empirical(self):
        plain = simple()
        assert status(plain, "label-empirical") is Status.NOT_MET
        attacked = plain.with_audits([attack(), attack(epsilon_lower=0.98765432)])
        item = answers(attacked)["label-empirical"]
        assert item.status is Status.MET
        assert "2 attacks" in item.reason
        assert "0.987654" in item.reason

    def test_interpretation(self):
        """Laplace noise of ε = ln 3: the best guess is right with 1 − e^(−ε/2)/2 = 0.7113."""
        item = answers(made(Laplace(1 / 1.0986122886681098)))["label-interpretation"]
        assert "71.2 %" in item.reason
