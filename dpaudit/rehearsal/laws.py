"""Whether mechanisms of others cost what they state: each is drawn, and its stated curve attacked.

The law of a mechanism of this package is derived; that of any other one is its author's word. The
attack sees draws alone, as the ledger would make them, on values at the declared distance.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.accounting import privacy_curve
from dpaudit.auditing.distinguishing.choosing import choose_score, first_scores
from dpaudit.auditing.distinguishing.nulls import CurveNull
from dpaudit.auditing.distinguishing.outputs import check_outputs
from dpaudit.auditing.distinguishing.scores import score_outputs
from dpaudit.base.errors import DpAuditError, UnsupportedError
from dpaudit.base.finding_table import FindingTable
from dpaudit.certificate import Finding
from dpaudit.certificate.laws import is_defined_here
from dpaudit.ledger import SecureNoise
from dpaudit.plan import Invocation, Plan
from dpaudit.project import AuditPair

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
