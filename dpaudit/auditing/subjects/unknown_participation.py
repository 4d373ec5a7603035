"""The one unit of which an attacker does not know when it takes part; of all others he does.

Poisson sampling with rate q takes a unit into each sample independently, so that given the past and
the samples of all others a release has the density (1 − q) p(o | out) + q p(o | in). Amplified
guarantees hold given the others' samples, whatever they are (Zhu, Dong and Wang 2022, Theorem 11):
who knows them is an adversary they cover. A subset of m of n units is m − 1 of the others and, with
probability m/n, the unit, else one more of the others: given these, the density is such a mixture
too, by the coupling behind the theorem for replaced units (Balle, Barthe and Gaboardi 2018).

Who took part in one release must not move the next ones, but through what was released. Then two
replays with the same releases, the unit in every sample and in none, give all densities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.auditing.replaying.checks import differ
from dpaudit.auditing.replaying.recording import Choose, Runnable, Step
from dpaudit.auditing.replaying.replay import record
from dpaudit.base.errors import InputError, UnsupportedError
from dpaudit.mechanisms.continual.release import Continual
from dpaudit.plan import AddRemove, FixedSizeSampling, Invocation, PoissonSampling
from dpaudit.project import AuditPair

PATTERNS = 4
"""So many ways of taking part are tried, whether they leave a trace beside the releases."""
_SCHEMES = (PoissonSampling, FixedSizeSampling)
Inside = Callable[[float], bool]
"""Whether the unit takes part, given the probability that it does."""


@dataclass(frozen=True)
class Hidden:
    """The unit that neighbours differ in.

    Attributes:
        place: among the units of the larger one of the neighbours.
        units: how many these are.
    """

    place: int
    units: int

    def choose(self, seed: int, inside: Inside) -> Choose:
        """Samples of all others that follow from a seed alone; with the unit where ``inside``."""
        rng = np.random.default_rng(seed)

        def chosen(use: Invocation, units: Sequence[str]) -> list[int]:
            missing, taken = self.units - len(units), inside(use.inclusion)
            if missing not in (0, 1):
                raise InputError("units are others from run to run; neighbours differ in one.")
            if isinstance(use.sampling, FixedSizeSampling):
                others = rng.permutation(self.units - 1)[: use.sampling.size - taken]
            else:
                others = np.flatnonzero(rng.random(self.units - 1) < use.inclusion)
            if missing:
                return list(map(int, others))
            return sorted([*(others + (others >= self.place)).tolist(), *[self.place] * taken])

        return chosen

    def takes_part(self, step: Step) -> bool:
        """Tell whether the unit was in the sample of a release."""
        inside = list((step.sample or {}).values())
        return len(inside) == self.units and inside[self.place]


def find_hidden(algorithm: Runnable, pair: AuditPair, seed: int) -> Hidden | None:
    """The unit that neighbours differ in, by halving those that it can be; None without samples.

    Raises:
        UnsupportedError: if a sampled release is no such mixture, as the run draws its samples
            itself or keeps in mind who took part, or no theorem covers its samples.
        InputError: if the neighbours differ in more than one unit of the samples.
    """
    uses = [use for use in algorithm.plan().invocations if use.sampling is not None]
    if not uses:
        return None
    for use in uses:
        _require_theorem(use)
    counts = [_units(algorithm, data, seed) for data in (pair.x, pair.x_prime)]
    large, small = (pair.x, pair.x_prime) if counts[0] >= counts[1] else (pair.x_prime, pair.x)

    def moved(places: Sequence[int]) -> bool:
        def choose(_: Invocation, units: Sequence[str]) -> list[int]:
            return [place for place in places if place < len(units)]

        first = record(algorithm, large, seed, choose)
        again = first.again(small, choose=choose)
        return any(map(differ, first.run.steps, again.common(first.run)))

    hidden = Hidden(_place(max(counts), getattr(uses[0].sampling, "size", 0), moved), max(counts))
    _require_no_trace(algorithm, large, small, hidden, seed)
    return hidden


def _require_theorem(use: Invocation) -> None:
    known = PoissonSampling if isinstance(use.relation, AddRemove) else _SCHEMES
    several = getattr(use.sampling, "rows", None) is not None
    if several or not isinstance(use.sampling, known) or isinstance(use.mechanism, Continual):
        raise UnsupportedError(
            f"{use.describe()} has samples for which no theorem says what an adversary may know of "
            "the other units; attack audit_release instead."
        )


def _units(algorithm: Runnable, data: Any, seed: int) -> int:
    """Tell how many units a run on the data samples from."""
    steps = [step for step in record(algorithm, data, seed).run.steps if step.invocation.sampling]
    counts = {len(step.sample or ()) for step in steps}
    if len(counts) != 1 or counts == {0}:
        raise UnsupportedError(
            "the plan samples units, and the run does not draw every sample by ledger.sample, from "
            "all units; let it, or attack audit_release instead."
        )
    return counts.pop()


def _place(units: int, size: int, moved: Callable[[Sequence[int]], bool]) -> int:
    """Tell which unit moves releases, by samples of a size, or of any size where it is 0."""
    left = list(range(units if units != size else 1))
    while len(left) > 1:
        half, rest = left[: len(left) // 2], left[len(left) // 2 :]
        known = [place for place in range(units) if place not in left]
        chosen = [*half, *known, *rest][:size] if size else range(rest[0])
        inside = [place for place in left if place in chosen]
        left = inside if moved(sorted(chosen)) else [each for each in left if each not in inside]
    return left[0]


def _require_no_trace(
    algorithm: Runnable, large: Any, small: Any, hidden: Hidden, seed: int
) -> None:
    """Refuse runs that a unit moves otherwise than through the releases that it takes part in."""
    base = record(algorithm, large, seed, hidden.choose(seed, lambda _: False))

    def again(data: Any, inside: Inside) -> tuple[Step, ...]:
        run = base.again(data, choose=hidden.choose(seed, inside))
        if not run.finished or len(run.steps) < len(base.run.steps):
            raise InputError("the run ends elsewhere with other samples; let no branch see them.")
        return run.steps

    for data in (large, small):
        out, within = again(data, lambda _: False), again(data, lambda _: True)
        if any(map(differ, base.run.steps, out)):
            raise InputError(
                "the neighbours differ though the unit is in no sample: units enter that are not "
                "sampled, or more than one differs."
            )
        for number in range(PATTERNS):
            coin = np.random.default_rng([seed, number])
            mixed = again(data, lambda _, coin=coin: coin.random() < 0.5)  # type: ignore[misc]
            for step, one, two in zip(mixed, out, within, strict=True):
                if differ(step, two if hidden.takes_part(step) else one):
                    raise UnsupportedError(
                        f"what is released at {step.invocation.at!r} depends on who took part in "
                        "earlier releases; keep no such state, or attack audit_release instead."
                    )
