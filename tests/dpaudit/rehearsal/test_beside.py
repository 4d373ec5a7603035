"""What a run does beside its ledger tells of a unit where it is given what one unit moves."""

import os
import tempfile
import threading
import uuid
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from dpaudit import (
    AddRemove,
    Invocation,
    Laplace,
    Ledger,
    Plan,
    PrivacyUnit,
    RunResult,
    Severity,
    Subject,
    TrustModel,
)
from dpaudit.certificate import Premise, Standing
from dpaudit.certificate.assumptions import assumptions_of
from dpaudit.rehearsal.rehearse import rehearse

NOISE = Laplace(2.0)
ROWS = [0.5, 0.25, 1.0, 0.0, 0.75, 0.5]
ABOUT = (PrivacyUnit("row"), AddRemove(), TrustModel.CENTRAL)


@dataclass(frozen=True)
class Beside(Subject):
    """A bounded sum, and what ``deed`` does with the number of rows and the release."""

    deed: str = ""

    def plan(self):
        return Plan.of(Invocation(NOISE, 1.0, *ABOUT, at="sum"))

    def run(self, data, ledger, rng):
        total = float(np.clip(np.nan_to_num(data), 0, 1).sum())
        told = ledger.release(NOISE, total, at="sum")
        return RunResult({"sum": told, "more": globals()[self.deed](total, told, rng)})


def simulates(total, told, rng):
    return float(NOISE.release_many(told, 9, rng).mean())


def releases_again(total, told, rng):
    return NOISE.release(total, rng)


def asks_again(total, told, rng):
    with Ledger(Beside().plan(), rng=np.random.default_rng(3)) as own:
        return own.release(NOISE, total, at="sum")


def draws_anew(total, told, rng):
    with Ledger(Beside().plan()) as own:
        return own.release(NOISE, total, at="sum")


def names(total, told, rng):
    return uuid.uuid4().hex


def names_by_data(total, told, rng):
    return uuid.uuid5(uuid.NAMESPACE_DNS, str(total)).hex


def scribbles(total, told, rng):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sum.txt")
        path.write_text(str(total))
        return path.read_text() == ""


def leaves(total, told, rng):
    handle, path = tempfile.mkstemp()
    os.close(handle)
    Path(path).write_text(str(total))


def renames(total, told, rng):
    handle, path = tempfile.mkstemp()
    os.close(handle)
    Path(path).rename(path + ".kept")


FOUND = {
    simulates: None,
    releases_again: "result-not-from-releases",
    asks_again: "result-not-from-releases",
    draws_anew: "hidden-randomness",
    names: None,
    names_by_data: "result-not-from-releases",
    scribbles: None,
    leaves: "beside-the-ledger",
    renames: "beside-the-ledger",
}


@pytest.mark.parametrize("deed", FOUND, ids=lambda each: each.__name__)
def test_what_leaves_beside_the_ledger_is_an_error(deed, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    subject = Beside(deed.__name__)
    outcome = rehearse(subject, ROWS)
    rule = FOUND[deed]
    found = [(each.rule, each.severity) for each in outcome.findings]
    assert found == ([] if rule is None else [(rule, Severity.ERROR)])
    known = assumptions_of(
        subject.plan(), code=True, rehearsal=outcome.record, findings=outcome.findings
    )
    standing = {each.premise: each.standing for each in known}[Premise.ONE_DOOR]
    beside = rule == "beside-the-ledger"
    assert rule == "hidden-randomness" or standing is (
        Standing.VIOLATED if beside else Standing.TESTED
    )


def test_a_file_that_was_there_before_is_no_scratch(tmp_path, monkeypatch):
    path = tmp_path / "there"
    path.write_text("before")

    def deed(total, told, rng):
        path.write_text(str(total))
        path.unlink()

    monkeypatch.setitem(globals(), "deed", deed)
    (finding,) = rehearse(Beside("deed"), ROWS).findings
    assert (finding.rule, finding.severity) == ("beside-the-ledger", Severity.ERROR)


def test_secret_bytes_are_those_of_the_system_for_all_others(monkeypatch):
    real, seen = os.urandom, []

    def deed(total, told, rng):
        thread = threading.Thread(target=lambda: seen.append(os.urandom(8)))
        thread.start()
        thread.join()
        seen.append(os.urandom)

    monkeypatch.setitem(globals(), "deed", deed)
    monkeypatch.setattr("dpaudit.base.processes.CAN_FORK", False)
    rehearse(Beside("deed"), ROWS)
    elsewhere, kept = seen[::2], seen[1::2]
    assert len(set(elsewhere)) == len(elsewhere) > 5  # the same 64 bits twice: once in 1e17
    assert os.urandom is real
    assert kept[0](8) != kept[0](8)
    assert len({each(8) for each in kept}) == len(kept)
