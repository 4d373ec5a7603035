"""A model that draws what the run releases is silent; another one is found."""

from dataclasses import dataclass

import numpy as np
import pytest
from effort import examples
from examples import Answers

from dpaudit import AuditPair
from dpaudit.rehearsal.models import model_findings
from dpaudit.rehearsal.rehearse import rehearse


@dataclass(frozen=True)
class Modelled(Answers):
    """All users answer alike; what is modelled are all answers, or what ``what`` makes of them."""

    users: int = 3
    what: str = "right"

    def audit_pairs(self):
        return (AuditPair(2.0, -2.0), AuditPair(0.0, 9.0))

    def modelled(self):
        if self.what != "incomparable":
            yield from ((answer, np.full(self.users, answer)) for answer in (2.0, -2.0))

    def audit_release(self, data, size, rng):
        mechanism = self.plan().invocations[0].mechanism
        shown = mechanism.release_many(np.full(self.users, data), size, rng)
        if self.what == "shifted":
            shown[:, 1] += 4.0
        if self.what == "louder":  # too little for any entry of few runs, and enough for all
            shown *= 3.0
        return shown[:, :2] if self.what == "shorter" else shown


@pytest.mark.parametrize("seed", range(examples(2, 4)))
@pytest.mark.parametrize("what", ["right", "incomparable"])
def test_a_right_model_is_silent(what, seed):
    assert model_findings(Modelled(what=what), seed, 1e-6) == []


@pytest.mark.unabridged
@pytest.mark.parametrize("what", ["shifted", "louder", "shorter"])
def test_a_wrong_model_is_found_by_a_rehearsal(what):
    subject = Modelled(what=what)
    (finding,) = rehearse(subject, subject.load("numbers", np.random.default_rng(0))).findings
    assert finding.rule == "model-differs"


def test_the_error_rate_is_as_stated(monkeypatch):
    """More than 12 of 16 at 20 % would be chance once in 10^6."""
    monkeypatch.setattr("dpaudit.rehearsal.models.MOST_COMPARED", 24)
    subject = Modelled()
    found = sum(bool(model_findings(subject, 1000 * seed, 0.2)) for seed in range(16))
    assert found <= 12
