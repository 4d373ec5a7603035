"""From an audit to its report in one call."""

from __future__ import annotations

import numpy as np
import pytest

import dpaudit
from dpaudit import AuditPair, Laplace, Verdict
from dpaudit.auditing import audit_release
from dpaudit.base.errors import InputError
from dpaudit.certificate import load_certificate
from dpaudit.training.membership import audit_scores


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
    with pytest.raises(InputError, match="they must be of the same one"):
        dpaudit.write_report(several, tmp_path / "r.md")
