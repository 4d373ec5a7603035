"""Attacks of one's own: one file each, tested by the suite that dpaudit's own scores pass."""

from dataclasses import dataclass

import numpy as np
import pytest
from score_conformance import ScoreConformance

from dpaudit import AuditPair, Claim, Laplace
from dpaudit.auditing import audit_release, audit_subject
from dpaudit.pytest_plugin import PrivacyViolationError, assert_private


@dataclass(frozen=True)
class LargestEntry:
    """The largest entry, for code that shows where noise was forgotten."""

    name: str = "largest entry"
    method: str = "black-box, largest entry"

    def __call__(self, outputs):
        """Outputs of shape (n, d) to scores of shape (n,)."""
        return outputs.max(axis=1)


@dataclass(frozen=True)
class Direction:
    """The entries along the difference of the means of a pilot."""

    weights: tuple[float, ...]
    name: str = "projection on the difference of means"
    method: str = "black-box, learned direction"

    @classmethod
    def learned(cls, x, x_prime):
        """What ``audit_release(..., learn=...)`` takes: outputs on both sides to scores."""
        return [cls(tuple((x.mean(axis=0) - x_prime.mean(axis=0)).tolist()))]

    def __call__(self, outputs):
        return outputs @ np.array(self.weights)


def leaky(data, size, rng):
    """Two noisy answers; the second has a third of the noise of the first."""
    return data + rng.laplace(scale=(3.0, 1.0), size=(size, 2))


PAIR = AuditPair([0.0, 1.0], [0.0, 0.0])


class TestLargestEntry(ScoreConformance):
    score = LargestEntry()
    release = staticmethod(leaky)
    pair = PAIR
    holds = Claim(1.0)
    broken = Claim(0.05)
    runs = 20_000


class TestDirection(ScoreConformance):
    score = Direction((0.0, 1.0))
    release = staticmethod(leaky)
    pair = PAIR
    holds = Claim(1.0)
    broken = Claim(0.5)


class TestUse:
    def test_a_pilot_picks_the_best_of_several(self):
        scores = [LargestEntry(), Direction((0.0, 1.0))]
        record = audit_release(leaky, PAIR, epsilon=0.5, score=scores, runs=3000, seed=1)
        assert record.refuted
        assert record.method == "black-box, learned direction"

    def test_a_pilot_teaches_scores_of_ones_own(self):
        record = audit_release(leaky, PAIR, epsilon=0.5, learn=Direction.learned, runs=3000, seed=1)
        assert record.refuted
        assert record.method == "black-box, learned direction"
        assert "not_learned" not in record.details

    def test_a_subject_is_attacked_by_its_mechanism_and_by_ones_own(self):
        from examples import Answers

        alone, beside = (
            audit_subject(Answers(), score=score, runs=400, seed=1) for score in (None, Useless())
        )
        assert alone == beside
        assert alone.method.startswith("white-box")

    def test_a_test_can_name_an_attack(self):
        assert not assert_private(Laplace(1.0), 1.0, (0.0, 1.0), runs=500, score=Useless()).refuted

        def function(data, rng, size):
            return leaky(data, size, rng)

        with pytest.raises(PrivacyViolationError, match="learned direction"):
            assert_private(function, 0.5, PAIR, score=Direction((0.0, 1.0)), runs=3000)


@dataclass(frozen=True)
class Useless:
    """Tells nothing apart."""

    name: str = "nothing"
    method: str = "no attack"

    def __call__(self, outputs):
        return np.zeros(len(outputs))
