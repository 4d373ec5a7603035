"""Answers of the reporting list of “How to DP-fy ML”."""

from dataclasses import replace

from judged import answers, made, simple, status

from dpaudit import (
    Laplace,
)
from dpaudit.reporting.checklists.model import Status


class TestReporting:
    def test_tuning_must_be_spoken_of(self):
        plain = simple()
        assert status(plain, "dpfy-data-accesses") is Status.UNKNOWN
        other = replace(plain, not_covered=("That somebody took part.",))
        assert status(other, "dpfy-data-accesses") is Status.UNKNOWN
        told = replace(plain, not_covered=("Tuning of the learning rate.",))
        assert status(told, "dpfy-data-accesses") is Status.MET

    def test_formal_statement_is_rounded_up(self):
        item = answers(made(Laplace(3.0)))["dpfy-formal-statement"]
        assert item.status is Status.MET
        assert "ε = 0.333334" in item.reason

    def test_code(self, certificates):
        assert status(certificates["certified"], "dpfy-open-code") is Status.UNKNOWN
        assert status(certificates["exceeded"], "dpfy-open-code") is Status.NOT_MET
