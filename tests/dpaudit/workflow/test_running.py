"""What a certificate says of a run is what the ledger's file says."""

from dataclasses import dataclass

import numpy as np
import pytest
from examples import LAPLACE, Answers, response_plan

from dpaudit import InputError, Ledger, RunResult, TamperedError
from dpaudit.ledger import read_journal
from dpaudit.workflow.running import ledger_record, run_subject


def released(path, users="abc"):
    ledger = Ledger(response_plan(), rng=np.random.default_rng(1), journal=path)
    ledger.release_each(LAPLACE, [0.0] * len(users), units=users)
    return ledger


def test_a_closed_ledger_is_read_back(tmp_path):
    ledger = released(tmp_path / "ledger.jsonl")
    ledger.close()
    record = ledger_record(ledger, tmp_path / "ledger.jsonl")
    assert (record["entries"], record["lines"]) == (3, 5)


def test_a_file_that_was_not_closed_is_not_believed(tmp_path):
    ledger = released(tmp_path / "ledger.jsonl")
    ledger.journal.release()
    with pytest.raises(TamperedError, match="somebody else wrote"):
        ledger_record(ledger, tmp_path / "ledger.jsonl")


def test_the_file_of_another_run_is_not_believed(tmp_path):
    ledger, other = released(tmp_path / "ledger.jsonl"), released(tmp_path / "other.jsonl", "bca")
    ledger.close()
    other.close()
    with pytest.raises(TamperedError, match="not the one that the ledger wrote"):
        ledger_record(ledger, tmp_path / "other.jsonl")


@dataclass(frozen=True)
class Fails(Answers):
    default_data = "numbers"
    how: str = "raises"

    def run(self, data, ledger, rng):
        if self.how == "early":
            raise ValueError("secret 17")
        super().run(data, ledger, rng)
        if self.how == "raises":
            raise ValueError("secret 17")
        return RunResult({"when": complex(1)})


@pytest.mark.parametrize("how", ["raises", "shows"])
def test_a_run_that_fails_late_says_what_is_charged(tmp_path, how):
    with pytest.raises(InputError, match="3 releases left and stay charged") as told:
        run_subject(f"{__name__}:Fails", [f"how={how}"], None, 1, tmp_path, rehearse=False)
    assert "17" not in str(told.value)
    assert "ledger.jsonl' keeps the record." in str(told.value)
    assert len(read_journal(tmp_path / "ledger.jsonl").releases) == 3


def test_a_run_that_fails_before_any_release_leaves_nothing(tmp_path):
    with pytest.raises(InputError, match="raised ValueError"):
        run_subject(f"{__name__}:Fails", ["how=early"], None, 1, tmp_path, rehearse=False)
    assert list(tmp_path.iterdir()) == []


class Theirs:
    """A library that draws in its own way."""

    sampler = "theirs 1.0"

    def draw(self):
        """Adds nothing anywhere."""


@dataclass(frozen=True)
class Borrows(Answers):
    default_data = "numbers"

    def run(self, data, ledger, rng):
        for unit in "abc":
            ledger.observe(LAPLACE, Theirs(), unit=unit)
        return RunResult({})


def test_noise_of_another_library_is_told(tmp_path):
    certificate, _ = run_subject(f"{__name__}:Borrows", [], None, 1, tmp_path, rehearse=False)
    told = {each.rule: each.message for each in certificate.findings}
    assert "theirs 1.0, in its own way" in told["noise-drawn-elsewhere"]
