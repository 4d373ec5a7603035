"""Whether mechanisms of others cost what they state: each is drawn, and its stated curve attacked.

The law of a mechanism of this package is derived; that of any other one is its author's word. The
attack sees draws alone, as the ledger would make them, on values at the declared distance.

Whether ``audit_release``, a model of a subject, draws what its run releases.

Whether units are sampled as rarely as declared, by what a change of one of them moves.

A unit whose values change moves those releases in whose samples it is. By the declaration that is a
binomial number of them, whatever the unit is, and however often the code runs.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from dpaudit.accounting import privacy_curve
from dpaudit.auditing.distinguishing.choosing import choose_score, first_scores
from dpaudit.auditing.distinguishing.design import CurveNull
from dpaudit.auditing.distinguishing.outputs import check_outputs
from dpaudit.auditing.distinguishing.scores import score_outputs
from dpaudit.auditing.replaying.replay import ReplayReport, record
from dpaudit.base.errors import DpAuditError, UnsupportedError
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Finding
from dpaudit.certificate.assumptions import is_defined_here
from dpaudit.ledger import SecureNoise
from dpaudit.plan import Invocation, Plan
from dpaudit.project import AuditPair, Subject

RUNS = 4_000
"""Draws on either value of a pair."""
DELTA = 1e-3
"""At which a score is chosen; the whole curve is tested."""
WIDE = 64
"""Entries of a value, at most."""
SECONDS = 20.0
"""Of the processor, so that a busy machine decides nothing, after which no further mechanism is
attacked; those that are not are assumed."""

Draw = Callable[[Any, int, np.random.Generator], NDArray[Any]]


def law_findings(
    plan: Plan, values: Mapping[str, NDArray[Any]], error_rate: float, seed: int
) -> tuple[list[Finding], dict[str, int]]:
    """Attack the curve that each mechanism of others states for one use.

    Args:
        plan: what is certified.
        values: a value before noise by label, for its shape; the attack begins there, too.
        error_rate: probability of a finding where all curves hold, at most.
        seed: of the attacks.

    Returns:
        One finding for each label whose stated curve is refuted; and how many draws were made for
        each other label whose mechanism could be drawn.
    """
    foreign = [each for each in plan.invocations if not is_defined_here(type(each.mechanism))]
    findings, drawn, end = list[Finding](), dict[str, int](), time.process_time() + SECONDS
    for each in foreign:
        one = replace(each, count=1, total=1, group=None, sampling=None)
        share = error_rate / len(foreign)
        with suppress(Exception):  # whatever code of others raises: it is not tested then
            refuted, draws = _attacked(one, values.get(one.at), share, seed, end)
            if refuted:
                facts = {"kind": one.mechanism.kind, "label": one.at, "draws": draws}
                found = FindingTable(__name__)
                findings.append(found("law-understated", one.at, **facts, rate=error_rate))
            elif draws:
                drawn[one.at] = draws
    return findings, drawn


def _attacked(
    one: Invocation, value: NDArray[Any] | None, share: float, seed: int, end: float
) -> tuple[bool, int]:
    """Tell whether an attack succeeds, and how many draws it took; none where there was no time."""
    pairs = [*_pairs(one, value)]
    attacks = [(draw, pair) for draw in _samplers(one) for pair in pairs]
    for number, (draw, pair) in enumerate(attacks, 1):
        if time.process_time() > end:
            return False, 0
        if _refuted(one, draw, pair, share / len(attacks), seed):
            return True, 2 * RUNS * number
    return False, 2 * RUNS * len(attacks)


def _refuted(one: Invocation, draw: Draw, pair: AuditPair, share: float, seed: int) -> bool:
    """Tell whether draws reject the curve, by a score that a quarter of them chose."""
    curve = privacy_curve(Plan.of(one))
    generators = np.random.default_rng(seed).spawn(2)
    x, x_prime = (
        check_outputs(draw(data, RUNS, rng), RUNS, "")
        for data, rng in zip((pair.x, pair.x_prime), generators, strict=True)
    )
    pilot, test_runs = RUNS // 4, RUNS - RUNS // 4
    sides = x[:pilot], x_prime[:pilot]
    score = choose_score(
        first_scores(x), *sides, DELTA, test_runs=test_runs, confidence=1 - share
    ).score
    null = CurveNull(curve, share)
    null.update(score_outputs(score, x[pilot:]), score_outputs(score, x_prime[pilot:]))
    return null.refuted


def _samplers(one: Invocation) -> Iterator[Draw]:
    """Return what draws it as the ledger does, with floats and exactly."""

    def release(value: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
        return np.stack([np.asarray(one.mechanism.release(value, rng)) for _ in range(size)])

    yield release
    if one.mechanism.has_exact_sampler():
        with suppress(UnsupportedError):
            secure = SecureNoise()
            yield lambda value, size, _: secure.release_many(one, value, size)


def _pairs(one: Invocation, value: NDArray[Any] | None) -> Iterator[AuditPair]:
    """Zero and the sensitivity in a few directions, and steps of that length from the value."""
    mechanism, length = one.mechanism, one.sensitivity
    if own := mechanism.worst_pairs():
        yield from (AuditPair(*pair) for pair in own)
        return
    value = np.zeros(()) if value is None or not value.size else value
    value = value if value.size <= WIDE else value.ravel()[:WIDE]
    ways = [np.zeros(value.shape), np.zeros(value.shape), np.ones(value.shape)]
    ways[0].flat[0], ways[1].flat[0] = length, -length
    ways[2] *= length / max(mechanism.norm.length(ways[2]), 1.0)
    for way in ways[: 2 + (value.size > 1)]:
        whole = value.dtype.kind in "iu" and bool((way == np.floor(way)).all())
        kind = value.dtype if whole else np.float64
        for start in (np.zeros(value.shape, kind), value.astype(kind)):
            with suppress(DpAuditError):  # the mechanism may take other values alone
                ends = [mechanism.prepare(each) for each in (start + way.astype(kind), start)]
                apart = (np.asarray(each, dtype=np.float64) for each in ends)
                if mechanism.norm.length(np.subtract(*apart)) <= length * (1 + 1e-9):
                    yield AuditPair(start + way.astype(kind), start)


MODEL_SECONDS = 2.0
"""For the real runs on one side beyond the first ones, and for the draws of the model."""
FEWEST = 8
MOST_COMPARED = 400
FOR_EACH = 5
"""Draws of the model for each real run; as many again tell how entries vary."""


def model_findings(subject: Subject, seed: int, error_rate: float) -> list[Finding]:
    """Compare the model with real runs on all that the subject says are alike.

    The test is that of Kolmogorov and Smirnov on every entry, and on the mean and the mean square
    of all entries together, which few runs suffice for; corrected for the number of tests.

    Args:
        subject: what may have ``modelled`` and ``statistic``.
        seed: of runs and draws.
        error_rate: probability of a finding where the model is right, at most.

    Returns:
        One if they differ.
    """
    alike = list(subject.modelled())
    runs = 0
    for part, (modelled, data) in enumerate(alike):
        real = np.stack(list(_runs(subject, data, seed)))
        rng = np.random.default_rng([seed, part])
        model = np.concatenate(list(_draws(subject, modelled, len(real), rng)))
        runs += len(real)
        if _differ(real, model, error_rate / len(alike)):
            return [FindingTable(__name__)("model-differs", runs=runs)]
    return []


def _runs(subject: Subject, data: Any, seed: int) -> Iterator[NDArray[Any]]:
    """Return what the model draws, of runs with different seeds."""
    start = time.monotonic()
    for number in range(MOST_COMPARED):
        if number >= FEWEST and time.monotonic() - start > MODEL_SECONDS:
            return
        steps = record(subject, data, seed + number).run.steps
        yield np.asarray(subject.statistic([step.handed for step in steps]))


def _draws(
    subject: Subject, data: Any, runs: int, rng: np.random.Generator
) -> Iterator[NDArray[Any]]:
    """Draws of the model, as many as are wanted or time allows."""
    start = time.monotonic()
    for done in range(0, runs, FEWEST):
        if done == 0 or time.monotonic() - start < MODEL_SECONDS:
            yield np.asarray(subject.audit_release(data, 2 * FOR_EACH * FEWEST, rng))


def _differ(real: NDArray[Any], model: NDArray[Any], error_rate: float) -> bool:
    from scipy.stats import ks_2samp

    if real.shape[1:] != model.shape[1:]:
        return True
    one = real.reshape(len(real), -1).astype(np.float64)
    scale, two = np.split(model.reshape(len(model), -1).astype(np.float64), 2)
    middle, spread = scale.mean(axis=0), scale.std(axis=0)
    spread[spread <= 1e-12 * np.abs(middle)] = np.inf  # constants: for tests of entries alone
    whole = [
        np.column_stack([z.mean(1), np.square(z).mean(1)])
        for z in ((one - middle) / spread, (two - middle) / spread)
    ]
    tests = [(whole, error_rate / 2), ((one, two), error_rate / 2)]
    return any(
        ks_2samp(x, y).pvalue <= share / left.shape[1]
        for (left, right), share in tests
        for x, y in zip(left.T, right.T, strict=True)
    )


UNITS = 4
"""So many units are followed through further runs."""
MOST_RUNS = 30
SURE = 1e-9
"""The probability that a unit is in all samples of all runs, at which there are enough of them."""
VISIBLE = 1e-6
"""A smaller part of the sensitivity does not count as a change."""


@dataclass(frozen=True)
class _Seen:
    """One unit, in ``moved`` of ``made`` samples."""

    at: str
    source: str
    moved: int
    made: int
    rate: float
    one_run: bool
    others: int
    """So many further labels of this rate are counted too."""

    @property
    def p_value(self) -> float:
        """Of the binomial law; within one run of that law given that the unit is seen at all."""
        tail = float(bdtrc(self.moved - 1, self.made, self.rate)) if self.moved else 1.0
        seen = -math.expm1(self.made * math.log1p(-self.rate)) if self.one_run else 1.0
        return min(1.0, tail / seen)


@dataclass
class Samples:
    """Counts of how often units were seen in samples.

    Attributes:
        rates: the declared probability to be in a sample, by label of the invocation.
    """

    rates: dict[str, float]
    _seen: list[_Seen] = field(default_factory=list)

    @classmethod
    def of(cls, plan: Plan) -> Samples:
        """For the sampled invocations of a plan."""
        drawn = {each.at: each.sampling for each in plan.invocations if each.sampling is not None}
        return cls({at: one.touching for at, one in drawn.items() if one.touching < 1})

    @property
    def followed(self) -> int:
        """In how many samples a unit could have been that was followed through further runs.

        None where it could not have been in one of some label, as that is not tested then.
        """
        made = Counter[str]()
        for each in self._seen:
            if not each.one_run and not each.others:
                made[each.at] += each.made
        return made.total() if all(made[at] for at in self.rates) else 0

    def first(self, report: ReplayReport) -> int:
        """Count the run in which a unit was seen first.

        Returns:
            How many further runs would show a unit that is in every sample of some rate; 0 if it
            was in none.
        """
        counts = [each for each in self._counted([report], one_run=True) if each.moved]
        self._seen += counts
        needed = [math.log(SURE) / (each.made * math.log(each.rate)) for each in counts]
        return min(MOST_RUNS, math.ceil(min(needed, default=0)))

    def further(self, reports: list[ReplayReport]) -> None:
        """Count further runs with one unit, whose choice depends on none of them."""
        self._seen += self._counted(reports, one_run=False)

    def _counted(self, reports: list[ReplayReport], *, one_run: bool) -> list[_Seen]:
        made, moved, places = Counter[str](), Counter[str](), dict[str, str]()
        for each in (each for report in reports for each in report.comparisons):
            made[each.at] += 1
            moved[each.at] += each.observed > VISIBLE * each.declared
            places[each.at] = each.source
        alike: dict[float, list[str]] = {}
        for at, rate in self.rates.items():
            if made[at]:
                alike.setdefault(rate, []).append(at)
        return [
            _Seen(
                labels[0],
                places[labels[0]],
                sum(moved[at] for at in labels),
                sum(made[at] for at in labels),
                rate,
                one_run,
                len(labels) - 1,
            )
            for rate, each in alike.items()
            for labels in ([[at] for at in each] + ([each] if len(each) > 1 else []))
        ]

    def findings(self, error_rate: float) -> list[Finding]:
        """Units that are in samples more often than declared; all together at the error rate."""
        worst: dict[str, _Seen] = {}
        for each in sorted(self._seen, key=lambda each: each.p_value):
            if each.p_value <= error_rate / len(self._seen):
                worst.setdefault(each.at, each)
        return [_too_often(each) for each in worst.values()]


def _too_often(seen: _Seen) -> Finding:
    where = "of one run" if seen.one_run else "of runs with different seeds"
    facts = {"moved": seen.moved, "made": seen.made, "source": seen.source, "rate": seen.rate}
    label = repr(seen.at) + (f" and {seen.others} other labels" if seen.others else "")
    found = FindingTable(__name__)
    return found("sampled-too-often", seen.at, label=label, where=where, **facts)
