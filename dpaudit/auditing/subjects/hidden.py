"""The one unit of which an attacker does not know when it takes part; of all others he does.

Poisson sampling with rate q takes the unit into each sample independently, so that given the past
and the samples of all others a release has the density (1 − q) p(o | out) + q p(o | in). Amplified
guarantees hold for each sample of the others (Zhu, Dong and Wang 2022, proof of Theorem 11): who
knows it is an adversary they cover. A subset of m of n units is m − 1 of the others and, with
probability m/n, the unit, else one further of the others; given these, the density is such a
mixture too, which is the coupling that proves the theorem for replaced units (Balle, Barthe and
Gaboardi 2018, Theorem 10).

A unit that takes part in one release must not move the next ones by itself, but only through what
was released: then two replays, with the unit in every sample and in none, give all densities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.auditing.replaying.checks import differ
from dpaudit.auditing.replaying.recording import Choose, DivergedError, Runnable, Step
from dpaudit.auditing.replaying.replay import record
from dpaudit.errors import InputError, UnsupportedError
from dpaudit.mechanisms.continual.release import Continual
from dpaudit.plan import AddRemove, FixedSizeSampling, Invocation, Plan, PoissonSampling
from dpaudit.project import AuditPair

__all__ = ["Hidden", "everyone", "find_hidden", "require_mixtures", "samples"]

PATTERNS = 4
"""So many ways of taking part are tried, whether they leave a trace beside the releases."""


@dataclass(frozen=True)
class Hidden:
    """The unit that neighbours differ in.

    Attributes:
        place: among the units of the larger one of the neighbours.
        units: how many these are.
    """

    place: int
    units: int

    def choose(self, seed: int, inside: Callable[[float], bool]) -> Choose:
        """Samples of all others that follow from a seed alone; with the unit where ``inside``.

        Args:
            seed: of the samples.
            inside: whether the unit takes part, given the probability that it does.
        """
        rng = np.random.default_rng(seed)

        def chosen(invocation: Invocation, units: Sequence[str]) -> list[int]:
            sampling, missing = invocation.sampling, self.units - len(units)
            if missing not in (0, 1):
                raise DivergedError
            assert sampling is not None
            taken = inside(sampling.inclusion)
            if isinstance(sampling, FixedSizeSampling):
                others = rng.permutation(self.units - 1)[: sampling.size - taken]
            else:
                others = np.flatnonzero(rng.random(self.units - 1) < sampling.inclusion)
            if missing:
                return sorted(others.tolist())
            return sorted([*(others + (others >= self.place)).tolist(), *[self.place] * taken])

        return chosen

    def takes_part(self, step: Step) -> bool:
        """Whether the unit was in the sample of a release."""
        sample = step.sample
        if sample is None or len(sample.units) < self.units:
            return False
        return sample.units[self.place] in sample.members


def samples(plan: Plan) -> bool:
    """Whether a plan samples units."""
    return any(each.sampling for each in plan.invocations)


def require_mixtures(plan: Plan) -> None:
    """Refuse a plan whose sampled releases are no mixtures of two densities each.

    Raises:
        UnsupportedError: if there is such a release.
    """
    for use in plan.invocations:
        fixed = isinstance(use.sampling, FixedSizeSampling)
        if use.sampling is None or (fixed and not isinstance(use.relation, AddRemove)):
            known = True
        else:
            known = isinstance(use.sampling, PoissonSampling)
        if not known or (use.sampling and isinstance(use.mechanism, Continual)):
            raise UnsupportedError(
                f"{use.describe()} has {use.sampling.kind if use.sampling else ''} samples, for "
                "which no theorem says what an adversary may know of the other units; attack "
                "audit_release instead."
            )


def everyone(plan: Plan) -> Choose | None:
    """Samples of all units, where any set of them can be a sample; None for samples as drawn."""
    if all(isinstance(each.sampling, PoissonSampling) for each in plan.invocations):
        return lambda _, units: list(range(len(units)))
    return None


def find_hidden(algorithm: Runnable, pair: AuditPair, seed: int) -> Hidden:
    """The unit that the neighbours differ in, by halving the samples that can hold it.

    Raises:
        UnsupportedError: if the run draws its samples itself, or keeps in mind who took part.
        InputError: if the neighbours differ in more than the samples of one unit.
    """
    counts = [_units(algorithm, data, seed) for data in (pair.x, pair.x_prime)]
    large, small = (pair.x, pair.x_prime) if counts[0] >= counts[1] else (pair.x_prime, pair.x)

    def moved(places: Sequence[int]) -> bool:
        def choose(invocation: Invocation, units: Sequence[str]) -> list[int]:
            return [place for place in places if place < len(units)]

        first = record(algorithm, large, seed, choose)
        again = first.again(small, choose=choose)
        return any(map(differ, first.run.steps, again.common(first.run)))

    hidden = Hidden(_place(algorithm.plan(), max(counts), moved), max(counts))
    _require_no_trace(algorithm, large, small, hidden, seed)
    return hidden


def _units(algorithm: Runnable, data: Any, seed: int) -> int:
    """How many units a run on the data samples from."""
    run = record(algorithm, data, seed).run
    counts = {len(sample.units) for sample in run.samples}
    if len(counts) != 1 or any(step.invocation.sampling and not step.sample for step in run.steps):
        raise UnsupportedError(
            "the plan samples units, but the run does not draw every sample by ledger.sample from "
            "all units; let it, or attack audit_release instead."
        )
    return counts.pop()


def _place(plan: Plan, units: int, moved: Callable[[Sequence[int]], bool]) -> int:
    sizes = [e.sampling.size for e in plan.invocations if isinstance(e.sampling, FixedSizeSampling)]
    places = list(range(units))
    if units in sizes:
        return 0
    while len(places) > 1:
        middle = len(places) // 2
        if sizes:
            known = [place for place in range(units) if place not in places]
            chosen = sorted([*places[:middle], *known, *places[middle:]][: sizes[0]])
        else:
            chosen = list(range(places[middle]))
        inside = [place for place in places if place in chosen]
        places = inside if moved(chosen) else [each for each in places if each not in inside]
    return places[0]


def _require_no_trace(
    algorithm: Runnable, large: Any, small: Any, hidden: Hidden, seed: int
) -> None:
    """Refuse runs that a unit moves otherwise than through the releases that it takes part in."""
    base = record(algorithm, large, seed, hidden.choose(seed, lambda rate: False))

    def again(data: Any, inside: Callable[[float], bool]) -> tuple[Step, ...]:
        run = base.again(data, choose=hidden.choose(seed, inside))
        if not run.finished or len(run.steps) < len(base.run.steps):
            raise InputError("the run ends elsewhere with other samples; let no branch see them.")
        return run.steps

    for one, two in zip(base.run.steps, again(small, lambda rate: False), strict=True):
        if differ(one, two):
            raise InputError(
                f"the neighbours differ at {one.invocation.at!r} though the unit is in no sample: "
                "units enter that are not sampled, or more than one differs; see dpaudit replay."
            )
    for data in (large, small):
        out, within = again(data, lambda rate: False), again(data, lambda rate: True)
        for number in range(PATTERNS):
            bits = np.random.default_rng([seed, number])
            mixed = again(data, lambda rate, bits=bits: bits.random() < 0.5)  # type: ignore[misc]
            for step, one, two in zip(mixed, out, within, strict=True):
                if differ(step, two if hidden.takes_part(step) else one):
                    raise UnsupportedError(
                        f"what is released at {step.invocation.at!r} depends on whether a unit "
                        "took part earlier, beside what was released: keep no such state, or "
                        "attack audit_release instead."
                    )
