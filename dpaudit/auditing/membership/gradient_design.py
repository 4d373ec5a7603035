"""The events that a gradient canary is judged by, chosen on simulated transcripts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpaudit.auditing.distinguishing.design import CURVE_SHARE
from dpaudit.auditing.distinguishing.experiment import Experiment, Stage
from dpaudit.auditing.evidence.joint import joint_lower_bound
from dpaudit.auditing.evidence.nuisance import clopper_pearson
from dpaudit.auditing.evidence.one_run_families import Least
from dpaudit.auditing.evidence.types import Event, PairCounts
from dpaudit.auditing.execution import Execution
from dpaudit.auditing.membership.claims import MembershipNull
from dpaudit.auditing.membership.gradients import GradientCanary
from dpaudit.mechanisms.pairs import Floats
from dpaudit.project import AuditPair

PRESENT_OR_ABSENT = AuditPair(1.0, 0.0, "a gradient canary is among the examples, or not")

_MOST_DRAWS = 20_000_000
_FEW, _MANY = 20_000, 200_000  # simulated runs
_EXPECTED_ALARMS = np.array([1.0, 2, 3, 5, 8, 12, 20, 40, 100, 400])
_SHARES = np.array([0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5])


@dataclass(frozen=True)
class GradientDesign:
    """What is decided without a look at the runs under test.

    Attributes:
        declared: the canary of the plan.
        canary: that of the noise which the pilot showed; its score is the attack.
        null: what is tested.
        runs: under test, on each side.
        pilot: runs before these.
        confidence: of each bound and of the verdict.
        seed: of the whole audit.
        most: runs of a simulated sample, at most.
    """

    declared: GradientCanary
    canary: GradientCanary
    null: MembershipNull
    runs: int
    pilot: int
    confidence: float
    seed: int
    most: int = _MANY

    @property
    def error(self) -> float:
        """Chance of refuting a true claim."""
        return 1.0 - self.confidence

    @cached_property
    def sample(self) -> tuple[Floats, Floats]:
        """Sorted scores of simulated trainings like those under test; never evidence."""
        wanted = min(self.most, max(_FEW, 10 * self.runs))
        size = max(1000, min(wanted, _MOST_DRAWS // self.canary.steps))
        experiment = Experiment(self.canary.simulate(), PRESENT_OR_ABSENT, self.seed)
        with experiment.trials(Execution(), {}) as trials:
            x, x_prime = trials.whole(Stage.SEARCH, size, self.canary)
        return np.sort(x), np.sort(x_prime)

    @cached_property
    def tail(self) -> Event:
        """The event that promises the largest bound at δ."""
        shares = _EXPECTED_ALARMS / self.runs
        thresholds = self._thresholds(shares[shares < 1])
        bounds = [
            joint_lower_bound(self._expected(each), self.null.claim.delta, self.confidence)
            for each in thresholds
        ]
        return Event(lower=float(thresholds[int(np.argmax(bounds))]))

    @cached_property
    def middle(self) -> Event:
        """The event that tells best how much noise there is."""
        thresholds = self._thresholds(_SHARES)

        def separation(threshold: float) -> float:
            from scipy.special import ndtri

            low, high = _ends(self._expected(threshold), self.error)
            return float(ndtri(low) - ndtri(high))

        return Event(lower=float(max(thresholds, key=separation)))

    def _thresholds(self, shares: Floats) -> Floats:
        """Scores that such shares of transcripts without the canary exceed."""
        x_prime = self.sample[1]
        places = np.clip(x_prime.size - np.rint(shares * x_prime.size), 0, x_prime.size - 1)
        values, times = np.unique(x_prime[places.astype(int)], return_counts=True)
        # Where many scores are equal, the next event leaves all of them out.
        return np.union1d(values, np.nextafter(values[times > 1], np.inf))

    def _expected(self, threshold: float) -> PairCounts:
        p, q = (1 - np.searchsorted(side, threshold) / side.size for side in self.sample)
        return PairCounts(
            int(np.floor(p * self.runs)), self.runs, int(np.ceil(q * self.runs)), self.runs
        )

    def by_curve(self, middle: PairCounts) -> bool:
        """Whether such counts of the middle event refute the curve, at its share of the error."""
        least = self.null.least
        return least is not None and curve_refuted(middle, least, self.error * CURVE_SHARE)

    def by_point(self, tail: PairCounts) -> bool:
        """Whether such counts of the tail event refute (ε, δ), at the rest of the error."""
        claim = self.null.claim
        error = self.error * (1.0 if self.null.least is None else 1.0 - CURVE_SHARE)
        return joint_lower_bound(tail, claim.delta, 1.0 - error) > claim.epsilon

    def would_find(self, strength: float) -> bool:
        """Whether counts at unfavourable 5 % quantiles refute, with the noise over ``strength``."""
        from scipy.stats import binom

        found = replace(self, canary=self.declared.with_noise_over(strength), most=_FEW)

        def unlucky(event: Event) -> PairCounts:
            p, q = (1 - np.searchsorted(side, event.lower) / side.size for side in found.sample)
            hits, others = binom.ppf(0.05, self.runs, p), binom.ppf(0.95, self.runs, q)
            return PairCounts(int(hits), self.runs, int(others), self.runs)

        if self.null.least is not None:
            by_curve = self.by_curve(unlucky(found.middle))
            # Of a claim that the curve implies, the point alone hardly ever shows more.
            if by_curve or not self.null.tighter:
                return by_curve
        return self.by_point(unlucky(found.tail))


def _ends(counts: PairCounts, error: float) -> tuple[float, float]:
    """Lower end for P(S) and upper end for Q(S), which hold together but for ``error``."""
    low, _ = clopper_pearson(counts.hits, counts.runs, error)
    _, high = clopper_pearson(counts.other_hits, counts.other_runs, error)
    return low, high


def curve_refuted(counts: PairCounts, least: Least, error: float) -> bool:
    """Whether an event fixed in advance was too frequent, beside the other side, for a curve."""
    low, high = _ends(counts, error)
    return bool(least(np.array([low]))[0] > high)
