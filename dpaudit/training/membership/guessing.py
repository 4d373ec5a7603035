"""From scores to guesses, and from right guesses to a bound, all fixed before a score is seen.

What is tested is a stated (ε, δ), a plan's whole curve, or both. A rule says how many of the
largest scores are guessed to be members and how many of the smallest to be none. Rules of which
each guesses all that those before do are one series, and cost no more than one rule. Equal scores
are ordered at random: the order in which canaries are stored may follow their membership. Beside
the evidence a record has the operating points of the scores, which describe and prove nothing.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.accounting import guarantee
from dpaudit.auditing.distinguishing.design import CURVE_SHARE
from dpaudit.auditing.evidence.events import Flags, as_scores
from dpaudit.auditing.evidence.one_run import (
    INDEPENDENCE,
    CurveFamily,
    Least,
    Walk,
    approximate_least,
    curve_least,
    fdp_p_value,
    fdp_rejects,
    fdp_strength,
    gaussian_family,
    independent_strength,
)
from dpaudit.auditing.execution import Execution
from dpaudit.auditing.subjects.declared import claimed_curve
from dpaudit.base.errors import InputError
from dpaudit.base.fields import Checked, Natural
from dpaudit.base.validate import probability
from dpaudit.certificate import AuditRecord, Claim
from dpaudit.mechanisms.pairs import Floats
from dpaudit.plan import MetricBall, Plan
from dpaudit.training.membership.shadows import Role, generator


@dataclass(frozen=True)
class MembershipNull:
    """The null hypothesis.

    Attributes:
        claim: its ε and δ.
        least: its curve as a test sees it; None where (ε, δ) alone is claimed.
        tighter: whether the claim says more than the plan's curve does.
    """

    claim: Claim
    least: Least | None
    tighter: bool = False

    @property
    def words(self) -> str:
        """What is tested, for the record."""
        if self.least is None:
            return "(ε, δ) alone"
        beside = ", and the tighter (ε, δ) of the claim" if self.tighter else ""
        return f"the plan's whole curve δ(ε){beside}"


def membership_null(epsilon: float | None, delta: float, plan: Plan | None) -> MembershipNull:
    """Return the hypothesis of an audit: a plan gives its curve, and its ε where none is stated.

    A claim that is looser than its plan is tested alone, a tighter one together with the curve:
    each of them must hold.

    Raises:
        InputError: if there is neither ε nor plan, the plan proves no finite ε at δ, or its
            neighbours do not differ in who takes part.
    """
    if plan is not None and not isinstance(plan, Plan):
        raise InputError(f"plan is {plan!r:.60}; it must be a Plan.")
    if plan is None:
        if epsilon is None:
            raise InputError("epsilon is missing, and there is no plan; give one of them.")
        return MembershipNull(Claim(epsilon, delta), None)
    if isinstance(plan.relation, MetricBall):
        raise InputError(
            f"plan has the relation {plan.relation}; an audit of membership needs add-remove, "
            "zero-out or replace-one."
        )
    if epsilon is None:
        epsilon = guarantee(plan, delta).epsilon
        if epsilon == math.inf:
            raise InputError(f"delta is {delta:g}; the plan proves no finite epsilon there.")
    claim = Claim(epsilon, delta)
    curve, _ = claimed_curve(plan, claim)
    if curve is None:
        return MembershipNull(claim, None)
    tighter = bool(curve(np.array([claim.epsilon]))[0] > claim.delta)
    of_plan, of_claim = curve_least(curve), approximate_least(claim.epsilon, claim.delta)
    return MembershipNull(claim, lambda p: np.maximum(of_plan(p), of_claim(p)), tighter)


def bound_as_json(epsilon: float) -> float | str:
    """Return a bound on ε in the details of a record, where strict JSON has no infinity.

    >>> bound_as_json(1.5), bound_as_json(math.inf)
    (1.5, 'infinity')
    """
    return "infinity" if epsilon == math.inf else epsilon


LOW_RATES = (0.001, 0.01)
"""False positive rates at which a record states the true positive rate."""

_MOST_POINTS = 200


def require_both_kinds(scores: ArrayLike, members: ArrayLike) -> tuple[Floats, Flags]:
    """Check scores and memberships: of the same length, with both kinds among them.

    Raises:
        InputError: if the lengths differ, a score is NaN, a membership neither a boolean nor 0 or
            1, or one kind is missing.
    """
    values, given = as_scores(scores=scores), np.asarray(members)
    if given.ndim != 1 or given.dtype.kind not in "biu" or not np.isin(given, (0, 1)).all():
        raise InputError(
            f"members has type {given.dtype} and shape {given.shape}; it must be a one-dimensional "
            "array of booleans."
        )
    flags = given.astype(bool)
    if values.size != flags.size:
        raise InputError(
            f"scores has {values.size} entries and members has {flags.size}; they must have "
            "equally many."
        )
    if flags.all() or not flags.any():
        missing = "no non-member" if flags.size and flags.all() else "no member"
        raise InputError(
            f"members has {missing} among {flags.size}; an attack needs members and others."
        )
    return values, flags


@dataclass(frozen=True, eq=False)
class Roc:
    """The operating points of all thresholds on a score.

    Attributes:
        fpr: share of non-members above each threshold, from 0 to 1, shape (n,).
        tpr: share of members above it, from 0 to 1, shape (n,).
    """

    fpr: Floats
    tpr: Floats

    @classmethod
    def of(cls, scores: ArrayLike, members: ArrayLike) -> Roc:
        """Return the curve of scores that are large for members.

        Args:
            scores: shape (m,).
            members: whether each was a member, shape (m,).

        Raises:
            InputError: if the lengths differ, a score is NaN, or all or none are members.

        Example:
            >>> roc = Roc.of([3.0, 2.0, 1.0, 0.0], [True, False, True, False])
            >>> roc.auc, roc.tpr_at(0.0)
            (0.75, 0.5)
        """
        values, flags = require_both_kinds(scores, members)
        order = np.argsort(-values, kind="stable")
        values, flags = values[order], flags[order]
        # Equal scores are passed together.
        last = np.append(values[1:] != values[:-1], True)
        hits, alarms = np.cumsum(flags)[last], np.cumsum(~flags)[last]
        return cls(np.append(0.0, alarms / alarms[-1]), np.append(0.0, hits / hits[-1]))

    @property
    def auc(self) -> float:
        """Area below the curve: the chance that a member scores higher, ties counted half."""
        widths = np.diff(self.fpr)
        return float((widths * (self.tpr[1:] + self.tpr[:-1])).sum() / 2)

    def tpr_at(self, fpr: float) -> float:
        """Give the largest true positive rate of a threshold with at most that false positive rate.

        Raises:
            InputError: if ``fpr`` is outside [0, 1).
        """
        limit = probability(fpr=fpr)
        return float(self.tpr[np.searchsorted(self.fpr, limit, side="right") - 1])

    def details(self) -> dict[str, Any]:
        """Return ``roc`` (at most 200 points), ``auc`` and ``tpr_at_fpr`` as JSON values."""
        fpr, tpr = self._thinned()
        return {
            "roc": {"fpr": fpr.tolist(), "tpr": tpr.tolist()},
            "auc": self.auc,
            "tpr_at_fpr": {f"{rate:g}": self.tpr_at(rate) for rate in LOW_RATES},
        }

    def _thinned(self) -> tuple[Floats, Floats]:
        """Keep at most 200 points, half of them even in the logarithm of the rate."""
        size = self.fpr.size
        if size <= _MOST_POINTS:
            return self.fpr, self.tpr
        even = np.linspace(0, size - 1, _MOST_POINTS // 2)
        logarithmic = np.geomspace(1, size, _MOST_POINTS // 2) - 1
        kept = np.unique(np.rint(np.concatenate([even, logarithmic])).astype(int))
        return self.fpr[kept], self.tpr[kept]


_UNFAIR = 1e-9
_STEPS_BOTH, _STEPS_TOP = 12, 7
_SMALL = 0.2
_SHARES = (0.9, 0.1)
"""Of the error rate: both ends, and the top alone (where few canaries are remembered at all)."""


@dataclass(frozen=True)
class Rule(Checked):
    """The number of guesses.

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
        """Return the rule in words."""
        top = f"the {self.members} largest scores are members" if self.members else ""
        bottom = f"the {self.others} smallest are none" if self.others else ""
        return " and ".join(filter(None, (top, bottom)))


@dataclass(frozen=True)
class Series:
    """A series of rules, each of which makes all guesses of those before it.

    Attributes:
        rules: by number of guesses.
        share: of the error rate.
    """

    rules: tuple[Rule, ...]
    share: float = 1.0


@dataclass(frozen=True)
class Design:
    """The plan of all guesses, and what is made of them.

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
        """Return a single rule for all."""
        return cls(canaries, (Series((rule,)),), (rule,), (rule,))

    @classmethod
    def default(cls, canaries: int, delta: float = 0.0) -> Design:
        """Choose numbers of guesses a factor √2 apart, from both ends and from the top alone.

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
    """Make rules of these sizes, rounded, each once and by size."""
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
    """The evidence of one run's guesses, all rules together.

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
        """Return a lower bound on ε at the claimed δ, which supposes nothing, and its guesses."""
        bounds = []
        for series, walk, right in self._walks():
            bound = walk.lower_bound(right, 1.0 - self._error * series.share)
            bounds.append((bound, series.rules[walk.surest(right, bound)]))
        return max(bounds, key=lambda pair: pair[0])

    def p_value(self) -> tuple[float, Rule]:
        """Return the p-value of the curve, or of (ε, δ) without one, and the guesses behind."""
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
        """Return lower bounds on the strength and on ε in a family of curves, as JSON values."""
        return self._in_family(family, fdp_strength, self.design.curve, family.assumption)

    def independent(self, family: CurveFamily) -> dict[str, Any]:
        """Return the same if, besides, canaries do not act on each other."""
        assumption = f"{family.assumption}, and {INDEPENDENCE}"
        return self._in_family(family, independent_strength, self.design.free, assumption)

    def needed(self) -> tuple[Rule, int | None]:
        """Return the guesses that came nearest to a refutation, and how many right ones it takes.

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
        """Find for each rule the fewest right guesses that refute; one too many if none do."""
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


class GuessAudit:
    """The decisions that stand before anything is trained.

    Args:
        null: what is tested.
        canaries: m, all that may be guessed.
        guesses: how many are guessed members and how many none; many numbers where not given.
        execution: its confidence and its seed are used.

    Attributes:
        seed: of the whole audit.

    Raises:
        InputError: if the guesses are no two numbers, more than the canaries, or too few to show
            anything.
    """

    def __init__(
        self,
        null: MembershipNull,
        canaries: int,
        guesses: tuple[int, int] | None,
        execution: Execution,
    ) -> None:
        self._null = null
        self._design = design = _design(guesses, canaries, null.claim.delta)
        self._confidence = execution.confidence
        self.seed = execution.known_seed()
        share = (1.0 - self._confidence) * design.series[0].share
        needed = int(np.ceil(-np.log2(share)))
        most = max(rule.made for rule in design.rules)
        if most < needed:
            raise InputError(
                f"there are {most} guesses; even if all were right, {needed} are needed at "
                f"{self._confidence:g} confidence, so use more canaries."
            )

    def record(
        self, scores: Floats, members: Flags, method: str, runs: int, further: dict[str, Any]
    ) -> AuditRecord:
        """Guess, and weigh what the guesses show."""
        values, flags = require_both_kinds(scores, members)
        require_fair_coins(flags)
        correct = guess(values, flags, self._design.rules, generator(self.seed, Role.TIES))
        claim, confidence = self._null.claim, self._confidence
        evidence = OneRunEvidence(self._design, correct, claim, self._null.least, confidence)
        p_value, best = evidence.p_value()
        lower, chosen = evidence.lower_bound()
        refuted = p_value <= 1.0 - confidence
        shown = best if refuted else chosen
        details: dict[str, Any] = {
            "test": "one-run audit",
            "null": self._null.words,
            "canaries": values.size,
            "guesses": shown.made,
            "correct": correct[shown],
            "rules_tried": len(correct),
            "p_value": p_value,
            **further,
        }
        if claim.delta > 0:
            details["family"] = evidence.within(gaussian_family())
            details["if_independent"] = evidence.independent(gaussian_family())
        return AuditRecord(
            refuted=refuted,
            method=method,
            claim_epsilon=claim.epsilon,
            delta=claim.delta,
            # Beside a curve (ε, δ) has a share of the error: at that, no more than this is shown.
            epsilon_lower=lower if refuted else min(lower, claim.epsilon),
            confidence=confidence,
            runs=runs,
            event=f"{shown.describe()}: {correct[shown]} of {shown.made} guesses right",
            seed=self.seed,
            pair={"x": "an example is trained on", "x_prime": "it is left out"},
            power="" if refuted else _power(evidence),
            details=details | Roc.of(values, flags).details(),
        )


def _design(guesses: tuple[int, int] | None, canaries: int, delta: float) -> Design:
    if guesses is None:
        return Design.default(canaries, delta)
    if not isinstance(guesses, Sequence) or len(guesses) != 2:
        raise InputError(f"guesses is {guesses!r}; it must be two numbers, (members, others).")
    rule = Rule(*guesses)
    if rule.made > canaries:
        raise InputError(f"guesses is {tuple(guesses)}; there are only {canaries} canaries.")
    return Design.fixed(canaries, rule)


def _power(evidence: OneRunEvidence) -> str:
    shown, needed = evidence.needed()
    if needed is None:
        return (
            f"Even {shown.made} right guesses of {shown.made} would not have refuted "
            f"{evidence.claim}; more canaries are needed."
        )
    return (
        f"{shown.made} guesses on {evidence.design.canaries} canaries had "
        f"{evidence.correct[shown]} right; {needed} would have refuted {evidence.claim}."
    )
