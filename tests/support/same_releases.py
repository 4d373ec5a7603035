"""What a study and its sealed form were about to release, and released, on the same table."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit import Subject
from dpaudit.auditing.replaying.recording import RecordingNoise, Step
from dpaudit.ledger import Ledger
from dpaudit.project import RunResult
from dpaudit.project.sealed_subject import OpenSubject, SealedSubject


def written(path: Path, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A CSV file with these columns, and its path."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *rows])
    return str(path)


def steps_of(subject: Subject, data: Any, seed: int = 5) -> tuple[list[Step], RunResult]:
    """All releases of a run at a seed, with the values before noise."""
    noise = RecordingNoise(np.random.default_rng(seed))
    ledger = Ledger(subject.plan(), noise=noise)
    try:
        result = subject.run(data, ledger, np.random.default_rng(seed + 1))
    finally:
        ledger.close()
    return noise.steps, result


def sealed_steps(subject: SealedSubject, path: str, seed: int = 5) -> tuple[list[Step], RunResult]:
    """The same of a sealed subject on a table, in this process."""
    run = OpenSubject(subject)
    return steps_of(run, run.load(path, np.random.default_rng(0)), seed)


def require_same(one: Sequence[Step], other: Sequence[Step], within: float) -> None:
    """Assert that two runs released the same at the same places, but for rounding before noise."""
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert (a.invocation, a.turn, a.unit) == (b.invocation, b.turn, b.unit)
        assert [*(a.sample or {}).values()] == [*(b.sample or {}).values()]
        np.testing.assert_allclose(a.value, b.value, rtol=0, atol=within)
        np.testing.assert_allclose(a.released, b.released, rtol=0, atol=within * len(one))
