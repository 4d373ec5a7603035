"""The suite that every score inherits: a subclass names the score and what it is to tell apart."""

from __future__ import annotations

import cloudpickle
import numpy as np
import pytest

from dpaudit import AuditPair, Claim
from dpaudit.auditing import Release, Score, audit_release
from dpaudit.auditing.distinguishing.scores import score_outputs

CONFIDENCE = 1 - 1e-6
"""Of the audits below: a score that is sound fails the suite once in a million seeds."""


class ScoreConformance:
    """Override the attributes; ``release`` as a ``staticmethod`` where it is a function."""

    score: Score
    release: Release
    pair: AuditPair
    holds: Claim
    """A claim that the release keeps on this pair."""
    broken: Claim
    """One that it breaks, and that this score is to refute."""
    runs: int = 2_000

    @pytest.fixture
    def outputs(self):
        rng = np.random.default_rng(5)
        sides = (self.pair.x, self.pair.x_prime)
        return np.concatenate([np.asarray(self.release(data, 40, rng), float) for data in sides])

    def test_is_a_score_with_a_name_and_a_method(self):
        assert isinstance(self.score, Score)
        for text in (self.score.name, self.score.method):
            assert isinstance(text, str)
            assert text.strip()

    def test_gives_one_number_for_each_output(self, outputs):
        assert score_outputs(self.score, outputs).shape == (len(outputs),)
        assert score_outputs(self.score, outputs[:1]).shape == (1,)

    def test_gives_the_same_number_whatever_stands_beside_an_output(self, outputs):
        """Runs must stay independent of each other, and chunks may be of any size."""
        whole = score_outputs(self.score, outputs)
        order = np.random.default_rng(0).permutation(len(outputs))
        np.testing.assert_allclose(
            score_outputs(self.score, outputs[order]), whole[order], rtol=1e-9, atol=1e-12
        )
        single = [score_outputs(self.score, outputs[place : place + 1])[0] for place in range(5)]
        np.testing.assert_allclose(single, whole[:5], rtol=1e-9, atol=1e-12)

    def test_gives_the_same_number_again_and_leaves_outputs_alone(self, outputs):
        kept = outputs.copy()
        kept.flags.writeable = False
        np.testing.assert_array_equal(self.score(kept), self.score(outputs))

    def test_is_frozen(self):
        with pytest.raises(AttributeError):
            self.score.name = "another"
        with pytest.raises(AttributeError):
            self.score.method = "another"

    def test_travels_to_other_processes(self, outputs):
        sent = cloudpickle.loads(cloudpickle.dumps(self.score))
        np.testing.assert_array_equal(sent(outputs), self.score(outputs))
        assert (sent.name, sent.method) == (self.score.name, self.score.method)

    def audit(self, claim, **options):
        return audit_release(
            self.release,
            self.pair,
            epsilon=claim.epsilon,
            delta=claim.delta,
            score=self.score,
            runs=self.runs,
            seed=1,
            confidence=CONFIDENCE,
            **options,
        )

    def test_refutes_what_is_broken(self):
        record = self.audit(self.broken)
        assert record.refuted
        assert record.epsilon_lower > self.broken.epsilon
        assert record.method == self.score.method

    @pytest.mark.parametrize("stop_early", [False, True])
    def test_refutes_nothing_that_holds(self, stop_early):
        assert not self.audit(self.holds, stop_early=stop_early).refuted

    def test_tells_nothing_apart_that_is_equal(self):
        record = audit_release(
            self.release,
            AuditPair(self.pair.x, self.pair.x),
            epsilon=0.0,
            score=self.score,
            runs=self.runs,
            seed=1,
            confidence=CONFIDENCE,
        )
        assert not record.refuted
