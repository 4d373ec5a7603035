"""From scores to guesses, and from right guesses to a bound, all fixed before a score is seen.

A rule says how many of the largest scores are guessed to be members and how many of the smallest
to be none. Several rules are tried at once, each at an equal share of the error rate. Equal scores
are ordered at random: the order in which canaries are stored may follow their membership.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.auditing.distinguishing.design import CURVE_SHARE
from dpaudit.auditing.evidence.one_run import one_run_lower_bound, one_run_p_value
from dpaudit.auditing.evidence.one_run_families import CurveFamily, Least
from dpaudit.auditing.evidence.one_run_fdp import fdp_p_value, fdp_rejects, fdp_strength
from dpaudit.auditing.evidence.types import Flags
from dpaudit.auditing.membership.claims import bound_as_json
from dpaudit.certificate import Claim
from dpaudit.errors import InputError
from dpaudit.fields import Checked, Natural
from dpaudit.mechanisms.pairs import Floats

_BOTH_SIDES = (1, 2, 4, 8, 16)
_TOP_ONLY = (4, 8, 16, 32)
_UNFAIR = 1e-9


@dataclass(frozen=True)
class Rule(Checked):
    """How many guesses are made.

    Attributes:
        members: of the largest scores, guessed to be members.
        others: of the smallest scores, guessed not to be.
    """

    members: Natural
    others: Natural = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.members + self.others == 0:
            raise InputError("guesses is (0, 0); at least one guess is needed.")

    def describe(self) -> str:
        """The rule in words."""
        top = f"the {self.members} largest scores are members" if self.members else ""
        bottom = f"the {self.others} smallest are none" if self.others else ""
        return " and ".join(filter(None, (top, bottom)))


@dataclass(frozen=True)
class Guesses:
    """What the guesses of one rule came to.

    Attributes:
        rule: that was fixed in advance.
        canaries: m, with and without a guess.
        correct: right guesses.
    """

    rule: Rule
    canaries: int
    correct: int

    @property
    def made(self) -> int:
        """How many guesses were made, right and wrong."""
        return self.rule.members + self.rule.others


def default_rules(canaries: int) -> tuple[Rule, ...]:
    """All, 1/2, … 1/16 of the canaries from both ends, and 1/4, … 1/32 from the top alone.

    Example:
        >>> [rule.members + rule.others for rule in default_rules(64)]
        [64, 32, 16, 8, 4, 16, 8, 4, 2]
    """
    both = [canaries // share for share in _BOTH_SIDES]
    rules = [Rule(size - size // 2, size // 2) for size in both if size]
    rules += [Rule(canaries // share) for share in _TOP_ONLY if canaries // share]
    return tuple(dict.fromkeys(rules))


def require_fair_coins(members: Flags) -> None:
    """Refuse memberships that no fair, independent coins would give (but one in 10⁹ times).

    Raises:
        InputError: saying how many are members.
    """
    from scipy.stats import binom

    size, hits = members.size, int(members.sum())
    if 2 * binom.cdf(min(hits, size - hits), size, 0.5) < _UNFAIR:
        raise InputError(
            f"members has {hits} of {size}; every canary must be included independently with "
            "probability 1/2."
        )


def guess(
    scores: Floats, members: Flags, rules: Sequence[Rule], rng: np.random.Generator
) -> list[Guesses]:
    """Guess by each rule, and count the right guesses.

    Args:
        scores: large for members, shape (m,).
        members: the truth, shape (m,).
        rules: fixed before the scores were seen, with at most m guesses each.
        rng: orders equal scores.
    """
    order = np.lexsort((rng.random(scores.size), scores))
    truth = members[order]
    from_bottom, from_top = np.cumsum(~truth), np.cumsum(truth[::-1])
    counted = []
    for rule in rules:
        right = int(from_top[rule.members - 1]) if rule.members else 0
        right += int(from_bottom[rule.others - 1]) if rule.others else 0
        counted.append(Guesses(rule, scores.size, right))
    return counted


@dataclass(frozen=True)
class OneRunEvidence:
    """What the guesses of one run show, all rules together.

    Attributes:
        tried: the guesses of every rule.
        claim: the ε and δ under test.
        least: the claimed curve as a test sees it; None where only (ε, δ) is claimed.
        confidence: of every statement.
    """

    tried: tuple[Guesses, ...]
    claim: Claim
    least: Least | None
    confidence: float

    @property
    def share(self) -> float:
        """The error rate of each rule."""
        return (1.0 - self.confidence) / len(self.tried)

    def lower_bound(self) -> tuple[float, Guesses]:
        """Lower bound on ε at the claimed δ (Steinke, Nasr and Jagielski 2023), and its guesses."""
        confidence = 1.0 - self.share
        bounds = [
            one_run_lower_bound(
                each.canaries, each.made, each.correct, self.claim.delta, confidence
            )
            for each in self.tried
        ]
        best = int(np.argmax(bounds))
        return bounds[best], self.tried[best]

    def p_value(self) -> tuple[float, Guesses]:
        """p-value of the claimed curve, or of (ε, δ) without one, and the guesses behind it."""
        values = [self._p_value(each) for each in self.tried]
        best = int(np.argmin(values))
        return min(1.0, values[best] * len(values)), self.tried[best]

    def within(self, family: CurveFamily) -> dict[str, Any]:
        """Lower bounds on the strength and on ε in a family of curves, as JSON values."""
        strength = max(
            fdp_strength(each.canaries, each.made, each.correct, family, 1.0 - self.share)
            for each in self.tried
        )
        return {
            "assumption": family.assumption,
            "strength": strength,
            "epsilon_lower": bound_as_json(family.epsilon(strength, self.claim.delta)),
        }

    def needed(self) -> tuple[Guesses, int | None]:
        """The guesses that came nearest to a refutation, and how many right ones it takes.

        None where even all right guesses of the largest rule would not refute the claim.
        """
        limits = [(each, self._critical_value(each)) for each in self.tried]
        possible = [(each, fewest) for each, fewest in limits if fewest <= each.made]
        if not possible:
            return max(self.tried, key=lambda each: each.made), None
        return min(possible, key=lambda pair: (pair[1] - pair[0].correct) / pair[0].made)

    def _critical_value(self, each: Guesses) -> int:
        """The fewest right guesses that refute the claim; one more than there are if none do."""
        counts = range(each.made + 1)
        return bisect_left(counts, True, lo=1, key=lambda correct: self._rejects(each, correct))

    def _rejects(self, each: Guesses, correct: int) -> bool:
        if self.least is None:
            return self._point(each, correct) <= self.share
        error = self.share * CURVE_SHARE
        return (
            fdp_rejects(each.canaries, each.made, correct, self.least, error)
            or self._point(each, correct) <= self.share - error
        )

    def _p_value(self, each: Guesses) -> float:
        """Of both tests where there is a curve: each has its share of the error rate."""
        point = self._point(each, each.correct)
        if self.least is None:
            return point
        curve = fdp_p_value(each.canaries, each.made, each.correct, self.least)
        return min(1.0, curve / CURVE_SHARE, point / (1.0 - CURVE_SHARE))

    def _point(self, each: Guesses, correct: int) -> float:
        return one_run_p_value(
            each.canaries, each.made, correct, self.claim.epsilon, self.claim.delta
        )
