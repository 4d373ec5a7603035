"""One run of an algorithm, for audits of one's own code on test data.

Noise remembers what passed through the ledger; what is seen beside the releases is kept too.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import logging
import math
import os
import random
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, ClassVar, Protocol, runtime_checkable
from unittest import mock

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.base.errors import PlanMismatchError, UnsupportedError
from dpaudit.ledger import Entry, ExternalDraw, FloatNoise, Ledger
from dpaudit.ledger.bounding import released_counts
from dpaudit.ledger.checks import caller
from dpaudit.ledger.entry import Key
from dpaudit.ledger.process_bound import ProcessBound
from dpaudit.ledger.samplers.streams import PrefixSums
from dpaudit.mechanisms import Mechanism
from dpaudit.mechanisms.base import Released
from dpaudit.mechanisms.continual.release import Continual, Stepwise
from dpaudit.mechanisms.pairs import Floats
from dpaudit.plan import Invocation, Plan

Choose = Callable[[Invocation, Sequence[str]], list[int]]
"""Says who takes part in a release, where it is not drawn: places among the units."""


_DOUBLE = "float64"
_FEW = 3


class Runnable(Protocol):
    """An algorithm that can be replayed, such as a :class:`~dpaudit.project.subject.Subject`."""

    def plan(self) -> Plan:
        """Return what it declares."""

    def run(self, data: Any, ledger: Ledger, rng: np.random.Generator) -> Any:
        """Run on data, which leave only through the ledger."""


@runtime_checkable
class ReplayableDraw(ExternalDraw, Protocol):
    """Noise of another library that can be looked at, and replaced by an earlier release."""

    def value(self) -> NDArray[Any]:
        """The private value before noise."""

    def released(self) -> NDArray[Any]:
        """Return what came out of :meth:`draw`."""

    def impose(self, released: ArrayLike) -> None:
        """Put an earlier release in place of the one just drawn."""

    # ``facts``, where given, are the public numbers that the library draws by, by name: they must
    # not differ between neighbours.


@dataclass(frozen=True)
class Routine:
    """A plan and a function ``f(data, ledger, rng)`` that is to follow it.

    Attributes:
        declared: the plan.
        function: the code.
    """

    declared: Plan
    function: Any

    def plan(self) -> Plan:
        """The declared plan."""
        return self.declared

    def run(self, data: Any, ledger: Ledger, rng: np.random.Generator) -> Any:
        """Call the function."""
        return self.function(data, ledger, rng)


@dataclass(frozen=True, eq=False)
class Step:
    """One release, with what a ledger forgets.

    Attributes:
        invocation: as declared.
        unit: whom the value belongs to; None for all.
        source: module and line that asked for the release.
        value: the private value after the mechanism's own clip, before noise; of a stream, what one
            step contributes.
        released: what came out.
        turn: which step of its stream this is; None for a release that is no stream.
        external: the library that drew the noise; empty if the ledger did.
        sample: of every unit, whether it takes part; None where the ledger drew no sample.
        keys: of counts of private keys, those of ``value``; None of all else.
        facts: by which numbers the library drew, that must be public, by name.
        parts: of a bounded sum, each unit's part, or what tells it from others, shape (units, k).
    """

    invocation: Invocation
    unit: str | None
    source: str
    value: NDArray[Any]
    released: Released
    turn: int | None = None
    external: str = ""
    sample: Mapping[str, bool] | None = None
    keys: tuple[Key, ...] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    parts: Floats | None = None

    @property
    def handed(self) -> Released | dict[Key, int]:
        """What came out, as the code was given it."""
        return self.released if self.keys is None else released_counts(self.keys, self.released)

    @property
    def place(self) -> str:
        """Label, unit and place in the code."""
        whom = "" if self.unit is None else f" for {self.invocation.unit} {self.unit!r}"
        return f"{self.invocation.at!r}{whom} ({self.source})"

    @property
    def drawn_alone(self) -> bool:
        """Whether it is sampled, and no ledger drew the sample."""
        return self.invocation.inclusion < 1 and self.sample is None

    @property
    def single(self) -> bool:
        """Whether its numbers may be 32-bit floats; libraries that tell facts say so."""
        return (
            bool(self.external)
            and self.facts.get("dtype", "" if not self.facts else _DOUBLE) != _DOUBLE
        )

    @property
    def touches(self) -> int:
        """How many such releases one unit may touch."""
        mechanism, count = self._compared, self.invocation.count
        if self.turn is None or not isinstance(mechanism, Stepwise):
            return count
        return count * mechanism.touches

    @property
    def adds_up(self) -> bool:
        """Whether it is a step of a stream whose steps are bounded all together."""
        mechanism = self.invocation.mechanism
        return self.turn is not None and isinstance(mechanism, Stepwise) and mechanism.adds_up

    @property
    def _compared(self) -> Mechanism:
        """The mechanism; with the steps of two where a unit is replaced by one at other steps."""
        mechanism = self.invocation.mechanism
        if not isinstance(mechanism, Continual) or mechanism.fixed_steps:
            return mechanism
        if not self.invocation.relation.replaces:
            return mechanism
        one, steps = mechanism.participations, mechanism.factorization.steps
        return replace(
            mechanism, participations=max(one, min(2 * one, steps)), min_separation=1, cyclic=None
        )

    def follows(self, other: Step) -> bool:
        """Tell whether the control flow that led here is the same."""
        mine = (self.invocation.at, self.unit, self.turn)
        return mine == (other.invocation.at, other.unit, other.turn)

    def distance(self, other: Step) -> float:
        """Tell how far the pre-noise values lie apart, in the mechanism's norm; never NaN."""
        if self.keys != other.keys:
            return self._by_key(other).distance(other._by_key(self))
        if self.value.shape != other.value.shape:
            return math.inf
        mechanism = self._compared
        if self.turn is None:
            apart = mechanism.distance(self.value, other.value)
        else:
            apart = mechanism.norm.length(self.value - other.value)
        return math.inf if math.isnan(apart) else apart

    def _by_key(self, other: Step) -> Step:
        """The same with a count, perhaps of 0, for each key that either has."""
        counts = dict(zip(self.keys or (), self.value.tolist(), strict=True))
        every = tuple(sorted({*counts, *(other.keys or ())}, key=repr))
        return replace(self, keys=every, value=np.array([counts.get(key, 0) for key in every]))


class DivergedError(BaseException):
    """Control flow differs from the first run. Not an ``Exception``, so that none swallows it."""


class RecordingNoise(ProcessBound):
    """Noise that keeps private values and what came out. For audits on test data, never else.

    Attributes:
        steps: what was released, in order.
        scores: what its labels begin with, score and output of every run of a selection.
    """

    called: ClassVar[str] = "noise"

    def __init__(self, rng: np.random.Generator, choose: Choose | None = None) -> None:
        super().__init__()
        self.steps: list[Step] = []
        self.scores: list[tuple[str, float, object]] = []
        self._first: Sequence[Step] = self.steps
        self._choose = choose
        self._waiting: dict[str, Mapping[str, bool]] = {}
        self._noise = FloatNoise(rng)
        self._rng = rng  # as FloatNoise has it: code that looks behind the ledger must not miss it

    @property
    def sampler(self) -> str:
        """That of the noise."""
        return self._noise.sampler

    def require(self, plan: Plan) -> None:
        """Every mechanism can be drawn."""

    def release(self, entry: Entry, value: NDArray[Any], **seen: Any) -> Released:
        """One release, kept."""
        released = self._drawn(entry, value)
        self._keep(entry, prepared(entry.invocation.mechanism, value), released, **seen)
        return released

    def release_sum(self, entry: Entry, value: NDArray[Any], parts: Floats) -> Released:
        """One release, kept with what each unit adds to it."""
        return self.release(entry, value, parts=part_signatures(parts))

    def release_keyed(self, entry: Entry, counts: Mapping[Key, int]) -> dict[Key, int]:
        """Counts of private keys, kept with these; told is what the first run told."""
        value = np.fromiter(counts.values(), np.int64)
        self._keep(entry, value, self._drawn(entry, value), keys=tuple(counts))
        first = self._first[len(self.steps) - 1]
        return released_counts(first.keys or (), first.released)

    def stream(self, entry: Entry, shape: Sequence[int]) -> RecordedSums:
        """A running release, of which every step is kept."""
        return RecordedSums(self, entry, self._noise.stream(entry, shape))

    def add(self, entry: Entry, sums: PrefixSums, value: NDArray[Any], unit: str | None) -> Floats:
        """One step of a stream, kept."""
        turn, source = sums.noise.taken, caller(())
        released = np.asarray(self._summed(sums, value), dtype=np.float64)
        self._keep(replace(entry, unit=unit, source=source), np.array(value), released, turn=turn)
        return released

    def score(self, within: str, score: float, output: object) -> float:
        """Keep what a run of a selection returned, also of those that were not the best."""
        self.scores.append((within, score, output))
        return score

    def observe(self, entry: Entry, external: ExternalDraw) -> None:
        """Noise of another library, kept if it can be looked at.

        Raises:
            UnsupportedError: if it cannot.
        """
        if not isinstance(external, ReplayableDraw):
            raise UnsupportedError(
                f"{entry.invocation.describe()} draws its noise in {external.sampler}, which "
                "cannot be recorded; give the object that draws it the methods of "
                "ReplayableDraw."
            )
        value = prepared(entry.invocation.mechanism, external.value())
        external.draw()
        self._settle(external)
        facts = getattr(external, "facts", {})
        self._keep(entry, value, external.released(), facts=facts)

    def sample(self, invocation: Invocation, units: Sequence[str]) -> list[int]:
        """Tell who takes part, kept with the release that follows."""
        places = (self._choose or self._sampled)(invocation, units)
        members = {units[place] for place in places}
        self._waiting[invocation.at] = {unit: unit in members for unit in units}
        return places

    def _sampled(self, invocation: Invocation, units: Sequence[str]) -> list[int]:
        return self._noise.sample(invocation, units)

    def _drawn(self, entry: Entry, value: NDArray[Any]) -> Released:
        return self._noise.release(entry, value)

    def _summed(self, sums: PrefixSums, value: NDArray[Any]) -> Released:
        return sums.add(value)

    def _settle(self, external: ReplayableDraw) -> None:
        """A first run keeps what was drawn."""

    def _keep(self, entry: Entry, value: NDArray[Any], released: Released, **seen: Any) -> None:
        external = entry.sampler if entry.external else ""
        seen |= {"external": external, "sample": self._waiting.pop(entry.invocation.at, None)}
        place = entry.invocation, entry.unit, entry.source
        self.steps.append(Step(*place, value, released, **seen))


class RecordedSums(PrefixSums):
    """A running release that shows each of its steps to a recorder.

    Args:
        recorder: keeps the steps.
        entry: the release that the stream is.
        sums: what adds up and draws.
    """

    def __init__(self, recorder: RecordingNoise, entry: Entry, sums: PrefixSums) -> None:
        self._recorder = recorder
        self._entry = entry
        self._sums = sums
        self.noise = sums.noise

    def add(self, value: ArrayLike, *, unit: str | None = None) -> Floats:
        """Count one more value and release the prefix sum, as the recorder gives it out."""
        self._sums.require(value)
        own = np.asarray(value, dtype=np.float64)
        return self._recorder.add(self._entry, self._sums, own, unit)

    def require(self, value: ArrayLike) -> None:
        """Refuse a value that :meth:`add` would refuse."""
        self._sums.require(value)


class ReplayingNoise(RecordingNoise):
    """Gives out what a first run released and whom it sampled, while the control flow is the same.

    Units of other names take the places of those that are missing.

    Raises:
        DivergedError: at the first release that the first run did not make, or made elsewhere; it
            is then the last of ``steps``.
    """

    def __init__(
        self, rng: np.random.Generator, first: Sequence[Step], choose: Choose | None = None
    ) -> None:
        super().__init__(rng, choose)
        self._first = first

    def _sampled(self, invocation: Invocation, units: Sequence[str]) -> list[int]:
        coming = (step for step in self._first[len(self.steps) :])
        drawn = next((step.sample for step in coming if step.invocation.at == invocation.at), None)
        if drawn is None:
            raise DivergedError
        present, drawn = set(units), dict(drawn)
        missing = [taken for unit, taken in drawn.items() if unit not in present]
        for unit in (unit for unit in units if unit not in drawn):
            drawn[unit] = missing.pop(0) if missing else self._rng.random() < invocation.inclusion
        return [place for place, unit in enumerate(units) if drawn[unit]]

    def _drawn(self, entry: Entry, value: NDArray[Any]) -> Released:
        turn = len(self.steps)
        return self._first[turn].released if turn < len(self._first) else np.nan

    def _summed(self, sums: PrefixSums, value: NDArray[Any]) -> Released:
        turn, own = len(self.steps), sums.add(value)
        return self._first[turn].released if turn < len(self._first) else np.full_like(own, np.nan)

    def _settle(self, external: ReplayableDraw) -> None:
        turn = len(self.steps)
        if turn < len(self._first):
            earlier = np.asarray(self._first[turn].released)
            if earlier.shape == external.released().shape:
                external.impose(earlier)

    def _keep(self, entry: Entry, value: NDArray[Any], released: Released, **seen: Any) -> None:
        super()._keep(entry, value, released, **seen)
        place, step = len(self.steps) - 1, self.steps[-1]
        if place >= len(self._first) or not step.follows(self._first[place]):
            raise DivergedError


class OtherLosers(ReplayingNoise):
    """Gives runs of selections that were not the best other noise, and lets them lose all the same.

    Args:
        rng: of the other noise.
        first: what the first run released.
        losers: what the labels of such runs begin with.
    """

    def __init__(
        self, rng: np.random.Generator, first: Sequence[Step], losers: frozenset[str]
    ) -> None:
        super().__init__(rng, first)
        self._losers = tuple(losers)

    def _drawn(self, entry: Entry, value: NDArray[Any]) -> Released:
        own = self._noise.release(entry, value)  # drawn always, as what follows is then the same
        return own if entry.invocation.at.startswith(self._losers) else super()._drawn(entry, value)

    def score(self, within: str, score: float, output: object) -> float:
        """The score of the best run alone."""
        return -math.inf if within in self._losers else score


def prepared(mechanism: Mechanism, value: ArrayLike) -> NDArray[Any]:
    """The private value as noise is added to it: after validation and clipping."""
    return np.array(mechanism.prepare(value))


def part_signatures(parts: Floats) -> Floats:
    """A few numbers of every part that is not zero, which differ where parts do."""
    own: Floats = parts[parts.any(axis=1)] + 0.0  # no negative zeros
    if own.shape[1] <= _FEW:
        return own
    directions = np.random.default_rng(0).standard_normal((own.shape[1], _FEW))
    return np.asarray(own @ directions)


def whole_streams(steps: Sequence[Step]) -> Iterator[Step]:
    """The steps of every stream as the one release that they are, and all other releases."""
    running: dict[str, list[Step]] = {}
    for step in steps:
        if step.turn is None:
            yield step
            continue
        parts = running.setdefault(step.invocation.at, [])
        if step.turn == 0 and parts:  # the next stream of the same invocation
            yield _stacked(parts)
            parts.clear()
        parts.append(step)
    for parts in running.values():
        yield _stacked(parts)


def _stacked(parts: Sequence[Step]) -> Step:
    value = np.stack([step.value for step in parts])
    released = np.stack([np.asarray(step.released) for step in parts])
    return replace(parts[0], unit=None, value=value, released=released, turn=None)


TEXT = "its text"
"""What a record is beside its values."""
_DOOR = Ledger.__module__.rpartition(".")[0]


class Ended(Enum):
    """An end of a run."""

    FINISHED = "finished"
    DIVERGED = "diverged"
    """At a release that the first run did not make."""
    REFUSED = "refused"
    """At a release that the plan does not declare."""
    RAISED = "raised"


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes:
        steps: what it released.
        shown: what is published of its result; plain values where it can be made plain.
        printed: what it wrote to stdout and stderr.
        randomness: the state in which it left its generator.
        ended: how it ended.
        error: what it raised, if it did.
        refused: how often it asked for what the plan does not admit.
        scores: what every run of a selection returned, whichever was the best.
    """

    steps: tuple[Step, ...]
    shown: Any
    printed: str
    randomness: Any
    ended: Ended
    error: BaseException | None = None
    refused: int = 0
    scores: Sequence[tuple[str, float, object]] = ()

    @property
    def finished(self) -> bool:
        """Whether it came to its end."""
        return self.ended is Ended.FINISHED

    @property
    def at_the_door(self) -> bool:
        """Whether the ledger itself raised, over a value that reached it."""
        trace = None if self.error is None else self.error.__traceback__
        while trace is not None:
            if str(trace.tb_frame.f_globals.get("__name__", "")).startswith(_DOOR):
                return True
            trace = trace.tb_next
        return False

    def common(self, first: Run) -> tuple[Step, ...]:
        """The steps before the divergence."""
        whole = len(self.steps)
        if whole and (
            whole > len(first.steps) or not self.steps[-1].follows(first.steps[whole - 1])
        ):
            return self.steps[:-1]
        return self.steps


def ran(algorithm: Runnable, data: Any, noise: RecordingNoise, rng: np.random.Generator) -> Run:
    """Run an algorithm through a ledger of its plan, whose noise keeps what passes.

    It is given data of its own, which it may change.
    """
    own = own_copy(data)
    ledger = Ledger(algorithm.plan(), noise=noise)
    result, ended = None, Ended.FINISHED
    error: BaseException | None = None
    printed = io.StringIO()
    with _heard(printed), _same_entropy(rng):
        try:
            result = algorithm.run(own, ledger, rng)
        except DivergedError:
            ended = Ended.DIVERGED
        except PlanMismatchError as refused:
            ended, error = Ended.REFUSED, refused
        except (Exception, SystemExit) as raised:  # noqa: BLE001 - whatever it raises is an output
            ended, error = Ended.RAISED, raised
    state = rng.bit_generator.state
    facts = (_published(result), printed.getvalue(), state, ended, error, ledger.refused)
    return Run(tuple(noise.steps), *facts, noise.scores)


@contextlib.contextmanager
def _same_entropy(rng: np.random.Generator) -> Iterator[None]:
    """Let identifiers, as of ``uuid4``, be the same in a replay; of this thread alone."""
    own, real = threading.get_ident(), os.urandom
    draw = random.Random(repr(rng.bit_generator.state)).randbytes
    running = True

    def drawn(size: int) -> bytes:
        return draw(size) if running and threading.get_ident() == own else real(size)

    with mock.patch.object(os, "urandom", drawn):
        try:
            yield
        finally:
            running = False  # whoever has kept this function draws secret bytes again


def own_copy(data: Any) -> Any:
    """Data of one run's own; what cannot be copied is handed over as it is."""
    try:
        return copy.deepcopy(data)
    except Exception:  # noqa: BLE001 - whatever foreign data raise
        return data


@contextlib.contextmanager
def _heard(printed: io.StringIO) -> Iterator[None]:
    """Keep what is printed, logged and warned of, instead of showing it."""

    def handle(_: logging.Logger, record: logging.LogRecord) -> None:
        printed.write(f"{record.levelname} {record.getMessage()}\n")

    def warned(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if category is UserWarning:  # those of numpy and of Python follow from no choice of words
            printed.write(f"{message}\n")

    with (
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        mock.patch.object(sys, "__stdout__", printed),
        mock.patch.object(sys, "__stderr__", printed),
        mock.patch.object(logging.Logger, "handle", handle),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("always", UserWarning)
        with mock.patch.object(warnings, "showwarning", warned):
            yield


def _published(result: Any) -> Any:
    """Return what others see of a result: not what is kept for its owner.

    Of a record, the text too: equal values of other types, or in another order, can be told apart.
    """
    if not hasattr(result, "to_dict"):
        return result
    record = result.to_dict()
    try:
        return {**record, TEXT: json.dumps(record)}
    except (TypeError, ValueError):
        return record


def shown(one: Any, two: Any, where: str = "") -> str:
    """Tell where two results differ, as a path of names; empty if nowhere."""
    if equal(one, two):
        return ""
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        if one.keys() != two.keys():
            return f"{where}the names"
        name = next(name for name in one if not equal(one[name], two[name]))
        return shown(one[name], two[name], f"{where}{name!s:.40}, ") or str(name)
    return where.removesuffix(", ") or "the result"


def equal(one: Any, two: Any) -> bool:
    """Equality of nested results; arrays entry by entry, NaN equal to NaN."""
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        return one.keys() == two.keys() and all(equal(one[key], two[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(two, list | tuple):
        return len(one) == len(two) and all(map(equal, one, two))
    try:
        return bool(np.array_equal(one, two, equal_nan=True))
    except TypeError:
        return bool(one == two)
