"""Attacks on the whole transcript of an algorithm, of which an attacker may not know one unit.

*The one unit* of which an attacker does not know when it takes part; of all others he does. Poisson
sampling with rate q takes a unit into each sample independently, so that given the past and the
samples of all others a release has the density (1 − q) p(o | out) + q p(o | in). Amplified
guarantees hold given the others' samples, whatever they are (Zhu, Dong and Wang 2022, Theorem 11):
who knows them is an adversary they cover. A subset of m of n units is m − 1 of the others and, with
probability m/n, the unit, else one more of the others: given these, the density is such a mixture
too, by the coupling behind the theorem for replaced units (Balle, Barthe and Gaboardi 2018).

Who took part in one release must not move the next ones, but through what was released. Then two
replays with the same releases, the unit in every sample and in none, give all densities.

*The likelihood ratio* of a transcript is the sum over releases of the log ratio of that release
given those before; where units are sampled, that of mixtures. An algorithm that releases through a
ledger need not say how its queries depend on the past: run again on either neighbour with the
releases *forced*, it computes them itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from dpaudit.accounting import privacy_curve
from dpaudit.auditing.distinguishing.engine import audit_release
from dpaudit.auditing.distinguishing.scores import CodeScore
from dpaudit.auditing.execution import Execution, ExecutionFields
from dpaudit.auditing.replaying.recording import (
    Choose,
    DivergedError,
    RecordingNoise,
    ReplayableDraw,
    Runnable,
    Step,
    own_copy,
    prepared,
    whole_streams,
)
from dpaudit.auditing.replaying.replay import differ, own_generator, record
from dpaudit.base.errors import InputError, PlanMismatchError, UnsupportedError
from dpaudit.certificate import AuditRecord
from dpaudit.ledger import Entry, Ledger
from dpaudit.ledger.samplers.streams import PrefixSums
from dpaudit.mechanisms.base import Released
from dpaudit.mechanisms.continual.release import Continual
from dpaudit.mechanisms.pairs import Floats
from dpaudit.plan import (
    AddRemove,
    FixedSizeSampling,
    Invocation,
    Plan,
    PoissonSampling,
    PrivateSelection,
)
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
                raise InputError(
                    "the units change from run to run; neighbouring data must differ in one unit."
                )
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
            f"{use.describe()} has a sampling scheme whose theorem does not say what an adversary "
            "may know about other units; attack audit_release instead."
        )


def _units(algorithm: Runnable, data: Any, seed: int) -> int:
    """Tell how many units a run on the data samples from."""
    steps = [step for step in record(algorithm, data, seed).run.steps if step.invocation.sampling]
    counts = {len(step.sample or ()) for step in steps}
    if len(counts) != 1 or counts == {0}:
        raise UnsupportedError(
            "the plan samples units, but the run does not draw each sample from all units by "
            "ledger.sample; draw it in this way, or attack audit_release instead."
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
            raise InputError(
                "the run ends at another release if the samples differ; let no branch depend on "
                "the samples."
            )
        return run.steps

    for data in (large, small):
        out, within = again(data, lambda _: False), again(data, lambda _: True)
        if any(map(differ, base.run.steps, out)):
            raise InputError(
                "the releases differ although the unit is in no sample: the run uses units "
                "that were not sampled, or more than one unit differs."
            )
        for number in range(PATTERNS):
            coin = np.random.default_rng([seed, number])
            mixed = again(data, lambda _, coin=coin: coin.random() < 0.5)  # type: ignore[misc]
            for step, one, two in zip(mixed, out, within, strict=True):
                if differ(step, two if hidden.takes_part(step) else one):
                    raise UnsupportedError(
                        f"the release at {step.invocation.at!r} depends on who took part in "
                        "earlier releases; keep no such state, or attack audit_release instead."
                    )


FEWER_RUNS = Execution(runs=1_000, seed=0)


@dataclass(frozen=True)
class Transcripts:
    """Independent runs of an algorithm, each as a row: how much it released, and all that.

    Attributes:
        algorithm: what is run.
        seed: of its own randomness, which is public here: the same in every run.
        entries: room for at least so many.
        hidden: the unit that neighbours differ in, where units are sampled. Each row then ends with
            a seed that the samples of all others follow from; they are known to the attacker.
    """

    algorithm: Runnable
    seed: int = 0
    entries: int = 0
    hidden: Hidden | None = None

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """``size`` transcripts, each after the number of its entries; shape (size, 1 + entries)."""
        plan, rows = self.algorithm.plan(), []
        seeds = rng.integers(2**48 if self.hidden else 1, size=(size, 1))
        for (seed,) in seeds:
            noise = RecordingNoise(rng, _known(self.hidden, seed, lambda rate: rng.random() < rate))
            ledger = Ledger(plan, noise=noise)
            self.algorithm.run(own_copy(data), ledger, own_generator(self.seed))
            if any(step.keys is not None for step in noise.steps):
                raise UnsupportedError(
                    "a transcript cannot hold private keys; attack a function instead."
                )
            rows.append(np.concatenate([np.ravel(step.released) for step in noise.steps]))
        longest = max(row.size for row in rows)
        whole = np.zeros((size, 1 + max(longest, self.entries)))
        for row, entries in zip(whole, rows, strict=True):
            row[0] = entries.size
            row[1 : 1 + entries.size] = entries
        return whole if self.hidden is None else np.hstack([whole, seeds])


def _known(hidden: Hidden | None, seed: float, inside: Inside) -> Choose | None:
    return None if hidden is None else hidden.choose(int(seed), inside)


class _ForcedNoise(RecordingNoise):
    """Releases what it is told."""

    def __init__(self, transcript: Floats, choose: Choose | None) -> None:
        super().__init__(np.random.default_rng(0), choose)
        self.left = transcript

    def _drawn(self, entry: Entry, value: NDArray[Any]) -> Released:
        released = self._next(prepared(entry.invocation.mechanism, value).shape)
        scalar: Released = released.item() if released.ndim == 0 else released
        return scalar

    def _summed(self, sums: PrefixSums, value: NDArray[Any]) -> Released:
        return self._next(np.shape(sums.add(value)))

    def _settle(self, external: ReplayableDraw) -> None:
        external.impose(self._next(external.released().shape))

    def _next(self, shape: tuple[int, ...]) -> Floats:
        """So many entries of the transcript."""
        size = math.prod(shape)
        if self.left.size < size:
            raise DivergedError
        released = self.left[:size].reshape(shape)
        self.left = self.left[size:]
        return released

    def log_densities(self) -> Iterator[tuple[Step, float]]:
        """The declared log-density of each release, given what came before."""
        for step in whole_streams(self.steps):
            released = np.asarray(step.released)[None]
            yield step, float(step.invocation.mechanism.log_density(released, step.value)[0])


@dataclass(frozen=True)
class ReplayScore(CodeScore):
    """Log-likelihood ratio of transcripts, by running the algorithm with their releases.

    Attributes:
        algorithm: what was run.
        x: one neighbour.
        x_prime: the other.
        seed: of the algorithm's own randomness, as in :class:`Transcripts`.
        hidden: as there.
    """

    algorithm: Runnable
    x: Any
    x_prime: Any
    seed: int = 0
    hidden: Hidden | None = None
    name: str = "log-likelihood ratio of the transcript"
    method: str = "white-box transcript likelihood ratio, by replay"

    def __call__(self, outputs: Floats) -> Floats:
        """One log ratio for each transcript."""
        return np.array([self._ratio(row) for row in outputs])

    def _ratio(self, row: Floats) -> float:
        over, under = (self._log_density(data, row) for data in (self.x, self.x_prime))
        return 0.0 if over == under else over - under

    def _log_density(self, data: Any, row: Floats) -> float:
        """Declared log-density; of samples that one unit may be in, the mixture, step by step."""
        out = self._forced(data, row, inside=False)
        if self.hidden is None or out is None:
            return -np.inf if out is None else sum(density for _, density in out)
        within = self._forced(data, row, inside=True)
        return -np.inf if within is None else sum(map(_mixed, out, within))

    def _forced(self, data: Any, row: Floats, *, inside: bool) -> list[tuple[Step, float]] | None:
        """Each release with its log-density; None if the data lead to other releases."""
        noise = _ForcedNoise(
            row[1 : 1 + int(row[0])], _known(self.hidden, row[-1], lambda rate: inside)
        )
        ledger = Ledger(self.algorithm.plan(), noise=noise)
        try:
            self.algorithm.run(own_copy(data), ledger, own_generator(self.seed))
        except (DivergedError, PlanMismatchError):
            return None
        return None if noise.left.size else list(noise.log_densities())


def _mixed(out: tuple[Step, float], within: tuple[Step, float]) -> float:
    """The log-density of a release whose sample may hold the unit."""
    rate = out[0].invocation.inclusion
    if rate == 1:
        return within[1]
    return float(np.logaddexp(math.log1p(-rate) + out[1], math.log(rate) + within[1]))


def audit_transcript(
    algorithm: Runnable,
    pair: AuditPair,
    *,
    epsilon: float,
    delta: float = 0.0,
    execution: Execution = FEWER_RUNS,
    **fields: Unpack[ExecutionFields],
) -> AuditRecord:
    """Attack the whole of an algorithm that releases through a ledger.

    Args:
        algorithm: a subject that can be run, or a
            :class:`~dpaudit.auditing.replaying.recording.Routine`.
        pair: the neighbours.
        epsilon: claimed ε of the whole.
        delta: claimed δ of the whole.
        execution: how many runs are drawn, and how; each costs three runs of the algorithm. The
            seed is that of the algorithm's own randomness as well.
        fields: fields of ``execution`` to replace, such as ``runs=2_000, seed=1``.

    Raises:
        InputError: as :func:`~dpaudit.auditing.distinguishing.engine.audit_release`.
        UnsupportedError: if a mechanism declares no density, or units are sampled otherwise than
            by ``ledger.sample``, or as no theorem covers.
    """
    execution = execution.updated(fields)
    seed = execution.known_seed()
    plan = algorithm.plan()
    if any(isinstance(each.mechanism, PrivateSelection) for each in plan.invocations):
        raise UnsupportedError(
            "the plan selects the best of secret runs, and no transcript shows the others; attack "
            "audit_release instead."
        )
    hidden = find_hidden(algorithm, pair, seed)
    return audit_release(
        Transcripts(algorithm, seed, _most_entries(algorithm, pair, seed), hidden),
        pair,
        epsilon=epsilon,
        delta=delta,
        curve=_curve(plan, epsilon, delta),
        score=ReplayScore(algorithm, pair.x, pair.x_prime, seed, hidden),
        execution=execution,
        seed=seed,
    )


def _most_entries(algorithm: Runnable, pair: AuditPair, seed: int) -> int:
    """Tell how many numbers one run releases; twice as many where runs differ."""
    sizes = {
        Transcripts(algorithm, seed)(data, 1, np.random.default_rng(number)).shape[1] - 1
        for number in range(3)
        for data in (pair.x, pair.x_prime)
    }
    return int(max(sizes)) if len(sizes) == 1 else 2 * int(max(sizes))


def _curve(plan: Plan, epsilon: float, delta: float) -> Any:
    """The plan's curve, if the claim states as much."""
    try:
        curve = privacy_curve(plan)
    except UnsupportedError:
        return None
    proved = float(curve(np.array([epsilon]))[0])
    return curve if proved <= delta * (1 + 1e-6) + 1e-12 else None
