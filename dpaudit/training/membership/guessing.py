"""From scores to guesses, and from right guesses to a bound, all fixed before a score is seen.

A rule says how many of the largest scores are guessed to be members and how many of the smallest
to be none. Rules of which each guesses all that those before do are one series, and cost no more
than one rule. Equal scores are ordered at random: the order in which canaries are stored may follow
their membership.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpaudit.auditing.distinguishing.design import CURVE_SHARE
from dpaudit.auditing.evidence.one_run_families import CurveFamily, Least
from dpaudit.auditing.evidence.one_run_fdp import fdp_p_value, fdp_rejects, fdp_strength
from dpaudit.auditing.evidence.one_run_independent import INDEPENDENCE, independent_strength
from dpaudit.auditing.evidence.one_run_walk import Walk
from dpaudit.auditing.evidence.types import Flags
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Natural
from dpaudit.certificate import Claim
from dpaudit.mechanisms.pairs import Floats
from dpaudit.training.membership.claims import bound_as_json

_UNFAIR = 1e-9
_STEPS_BOTH, _STEPS_TOP = 12, 7
_SMALL = 0.2
_SHARES = (0.9, 0.1)
"""Of the error rate: both ends, and the top alone (where few canaries are remembered at all)."""


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

    @property
    def made(self) -> int:
        """How many guesses it makes, right and wrong."""
        return self.members + self.others

    def describe(self) -> str:
        """The rule in words."""
        top = f"the {self.members} largest scores are members" if self.members else ""
        bottom = f"the {self.others} smallest are none" if self.others else ""
        return " and ".join(filter(None, (top, bottom)))


@dataclass(frozen=True)
class Series:
    """Rules of which each makes all guesses of those before it.

    Attributes:
        rules: by number of guesses.
        share: of the error rate.
    """

    rules: tuple[Rule, ...]
    share: float = 1.0


@dataclass(frozen=True)
class Design:
    """What is guessed, and what is made of it.

    Attributes:
        canaries: m, with and without a guess.
        series: for (ε, δ).
        curve: rules for a whole curve, at an equal share each.
        free: rules for canaries that do not act on each other, at an equal share each.
    """

    canaries: int
    series: tuple[Series, ...]
    curve: tuple[Rule, ...]
    free: tuple[Rule, ...]

    @classmethod
    def fixed(cls, canaries: int, rule: Rule) -> Design:
        """A single rule for all."""
        return cls(canaries, (Series((rule,)),), (rule,), (rule,))

    @classmethod
    def default(cls, canaries: int, delta: float = 0.0) -> Design:
        """Numbers of guesses a factor √2 apart, from both ends and from the top alone.

        Where canaries times δ is not small, each number costs by itself, and there are fewer.

        The few rules for curves are those that show most where scores of members are normal ones,
        shifted by 1/2 to 4 deviations (``python -m tests.benchmarks.membership``).

        Example:
            >>> [rule.made for rule in Design.default(64).series[1].rules]
            [2, 3, 4, 6, 8, 11, 16]
        """
        halves = _rules(_both, (canaries / 8, canaries / 4, canaries / 2))
        both, top = halves, _rules(Rule, (canaries / 32, canaries / 8))
        if canaries * delta <= _SMALL:
            both = _rules(_both, (canaries * 2.0 ** (-step / 2) for step in range(_STEPS_BOTH)))
            top = _rules(Rule, (canaries * 2.0 ** (-2 - step / 2) for step in range(_STEPS_TOP)))
        series = tuple(map(Series, filter(None, (both, top)), _SHARES))
        free = _rules(_both, (canaries / 2, canaries))
        return cls(canaries, series, (*halves, *_rules(Rule, [canaries / 16])), free)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All that are guessed by."""
        return tuple(
            dict.fromkeys((*(r for s in self.series for r in s.rules), *self.curve, *self.free))
        )


def _both(size: int) -> Rule:
    return Rule(size - size // 2, size // 2)


def _rules(kind: Callable[[int], Rule], sizes: Iterable[float]) -> tuple[Rule, ...]:
    """Rules of these sizes, rounded, each once and by size."""
    return tuple(kind(size) for size in sorted({*map(round, sizes)} - {0}))


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
) -> dict[Rule, int]:
    """Guess by each rule, and count the right guesses.

    Args:
        scores: large for members, shape (m,).
        members: the truth, shape (m,).
        rules: fixed before the scores were seen, with at most m guesses each.
        rng: orders equal scores.
    """
    order = np.lexsort((rng.random(scores.size), scores))
    truth = members[order]
    from_bottom, from_top = np.append(0, np.cumsum(~truth)), np.append(0, np.cumsum(truth[::-1]))
    return {rule: int(from_top[rule.members] + from_bottom[rule.others]) for rule in rules}


@dataclass(frozen=True)
class OneRunEvidence:
    """What the guesses of one run show, all rules together.

    Attributes:
        design: what was fixed in advance.
        correct: the right guesses of every rule.
        claim: the ε and δ under test.
        least: the claimed curve as a test sees it; None where only (ε, δ) is claimed.
        confidence: of every statement.
    """

    design: Design
    correct: Mapping[Rule, int]
    claim: Claim
    least: Least | None
    confidence: float

    def lower_bound(self) -> tuple[float, Rule]:
        """Lower bound on ε at the claimed δ, which supposes nothing, and its guesses."""
        bounds = []
        for series, walk, right in self._walks():
            bound = walk.lower_bound(right, 1.0 - self._error * series.share)
            bounds.append((bound, series.rules[walk.surest(right, bound)]))
        return max(bounds, key=lambda pair: pair[0])

    def p_value(self) -> tuple[float, Rule]:
        """p-value of the claimed curve, or of (ε, δ) without one, and the guesses behind it."""
        values = []
        for series, walk, right in self._walks():
            value = walk.p_value(right, self.claim.epsilon) / (series.share * self._at_point)
            values.append((value, series.rules[walk.surest(right, self.claim.epsilon)]))
        if self.least is not None:
            share = CURVE_SHARE / len(self.design.curve)
            for rule in self.design.curve:
                found = fdp_p_value(*self._counts(rule), self.least)
                values.append((found / share, rule))
        value, rule = min(values, key=lambda pair: pair[0])
        return min(1.0, value), rule

    def within(self, family: CurveFamily) -> dict[str, Any]:
        """Lower bounds on the strength and on ε in a family of curves, as JSON values."""
        return self._in_family(family, fdp_strength, self.design.curve, family.assumption)

    def independent(self, family: CurveFamily) -> dict[str, Any]:
        """The same if, besides, canaries do not act on each other."""
        assumption = f"{family.assumption}, and {INDEPENDENCE}"
        return self._in_family(family, independent_strength, self.design.free, assumption)

    def needed(self) -> tuple[Rule, int | None]:
        """The guesses that came nearest to a refutation, and how many right ones it takes.

        None where even all right guesses of the largest rule would not refute the claim.
        """
        fewest = self._fewest()
        possible = {rule: count for rule, count in fewest.items() if count <= rule.made}
        if not possible:
            return max(fewest, key=lambda rule: rule.made), None
        nearest = min(possible, key=lambda rule: (possible[rule] - self.correct[rule]) / rule.made)
        return nearest, possible[nearest]

    @property
    def _error(self) -> float:
        return 1.0 - self.confidence

    @property
    def _at_point(self) -> float:
        """The share of the error rate that (ε, δ) has beside a curve."""
        return 1.0 if self.least is None else 1.0 - CURVE_SHARE

    def _walks(self) -> list[tuple[Series, Walk, list[int]]]:
        walks = []
        for series in self.design.series:
            sizes = tuple(rule.made for rule in series.rules)
            right = [self.correct[rule] for rule in series.rules]
            walks.append((series, Walk(self.design.canaries, sizes, self.claim.delta), right))
        return walks

    def _counts(self, rule: Rule) -> tuple[int, int, int]:
        return self.design.canaries, rule.made, self.correct[rule]

    def _in_family(
        self,
        family: CurveFamily,
        bound: Callable[[int, int, int, CurveFamily, float], float],
        rules: Sequence[Rule],
        assumption: str,
    ) -> dict[str, Any]:
        confidence = 1.0 - self._error / len(rules)
        strength = max(bound(*self._counts(rule), family, confidence) for rule in rules)
        return {
            "assumption": assumption,
            "strength": strength,
            "epsilon_lower": bound_as_json(family.epsilon(strength, self.claim.delta)),
        }

    def _fewest(self) -> dict[Rule, int]:
        """For each rule the fewest right guesses that refute the claim; one too many if none do."""
        fewest: dict[Rule, int] = {}
        for series, walk, _ in self._walks():
            error = self._error * self._at_point * series.share
            fewest |= zip(series.rules, walk.needed(self.claim.epsilon, error), strict=True)
        if self.least is not None:
            error = self._error * CURVE_SHARE / len(self.design.curve)
            for rule in self.design.curve:
                m, g, least = self.design.canaries, rule.made, self.least
                rejects = partial(fdp_rejects, m, g, least=least, error=error)
                first = bisect_left(range(g + 1), True, lo=1, key=rejects)
                fewest[rule] = min(first, fewest.get(rule, first))
        return fewest
