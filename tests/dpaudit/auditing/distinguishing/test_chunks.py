"""Stages are cut into chunks that hold every run once."""

import pytest

from dpaudit.auditing.distinguishing.experiment import LARGEST_CHUNK, Side, Stage, chunks


@pytest.mark.parametrize("runs", [1, 63, 64, 65, 10_000, 3_000_001])
def test_chunks_hold_every_run_once(runs):
    parts = list(chunks(Stage.TEST, runs))
    assert [part.number for part in parts] == list(range(len(parts)))
    assert sum(part.size for part in parts) == runs
    assert all(part.start + part.size == after.start for part, after in zip(parts, parts[1:]))  # noqa: B905, RUF007
    assert max(part.size for part in parts) <= LARGEST_CHUNK


def test_sentences_name_runs_and_side():
    (part,) = chunks(Stage.PILOT, 1)
    assert part.runs_on(Side.X_PRIME) == "in runs 1 to 1 on x'"
