"""Rehearsals of small subjects: what they find, by rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpaudit.ledger import Ledger
from dpaudit.project import RunResult, Subject
from dpaudit.rehearsal.rehearse import rehearse

__all__ = ["Gossip", "rules"]


def rules(subject: Subject, source: str | None = None, seed: int = 0) -> set[str]:
    """The rules of what a rehearsal of a subject on its own data finds; it must be possible."""
    name = subject.default_data if source is None else source
    data = subject.load(name, np.random.default_rng([seed, 7]))
    shown = rehearse(subject, data, name, seed=seed, timeout=None)
    assert shown.record.done, shown.record.reason
    assert len(shown.record.neighbours) >= 4
    return {finding.rule for finding in shown.findings}


class Gossip(Subject):
    """A mistake to mix in: what is the owner's alone is published."""

    def run(self, data: Any, ledger: Ledger, rng: np.random.Generator) -> RunResult:
        """As it should be, and then everything is shown."""
        return super().run(data, ledger, rng).for_owner
