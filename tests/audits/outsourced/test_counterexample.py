"""Certificates of the refutation, and what a replay finds different."""

from __future__ import annotations

from dataclasses import replace

from audits.differences import differences
from audits.outsourced.counterexample import attacked, replayed
from dpaudit import Verdict


def test_a_false_statement_is_found():
    certificate = attacked("CertifiedCurator", "taipei", 1.0)
    stated, found = next(replayed(certificate))
    assert not differences(stated.to_dict(), found.to_dict())
    wrong = replace(stated, details=stated.details | {"p_value": 1e-9})
    (apart,) = differences(wrong.to_dict(), found.to_dict())
    assert apart.path == "details.p_value"


def test_the_certified_curator_stays_certified():
    assert attacked("CertifiedCurator", "taipei", 1.0).verdict is Verdict.CERTIFIED
