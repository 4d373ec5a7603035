"""What a certificate says of a run is what the ledger's file says."""

import numpy as np
import pytest
from examples import LAPLACE, response_plan

from dpaudit import Ledger, TamperedError
from dpaudit.workflow.running import ledger_record


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
