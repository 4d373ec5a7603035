"""Known mistakes of tree aggregation are found."""

from __future__ import annotations

import pytest

from audits.joint import mistakes, transcript
from dpaudit.auditing import audit_subject

SMALL = transcript.small().feature_map


@pytest.mark.parametrize("mistake", [mistakes.ForgottenLevels, mistakes.SharedNoise])
def test_known_mistakes_are_found(mistake) -> None:
    subject = mistake(steps=32, feature_map=SMALL, continual_noise="binary-tree")
    record = audit_subject(subject, subject.audit_pairs()[0], runs=2500, seed=1)
    assert record.refuted
