"""An experiment: which runs there are, how they are drawn, and how it goes on after a kill.

An experiment has one release, two neighbours and one seed. Its stages are made of chunks of runs,
and every chunk has a seed of its own, spawned from the experiment's by stage, side and number of
the chunk. So its runs are the same in whatever process, order or session they are drawn.

*The journal* of finished chunks: its first line says which experiment it is; every further line
holds one finished chunk and a checksum. One that is missing is run again and is the very same, so
no run is lost and none counts twice.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import json
import math
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.children import (
    Child,
    EndedError,
    HangsError,
    TrialTimeoutError,
    generators,
    within_time,
)
from dpaudit.auditing.distinguishing.dependence import MOST_RUNS, require_independent
from dpaudit.auditing.distinguishing.output_facts import entry_name
from dpaudit.auditing.distinguishing.outputs import (
    BlackBox,
    NotPlainError,
    RefusedError,
    ScoreError,
    attempt,
    check_outputs,
    copies,
    singles,
)
from dpaudit.auditing.distinguishing.scores import Score, score_outputs
from dpaudit.auditing.evidence.events import Both
from dpaudit.auditing.execution import Execution, TaskMap, workers
from dpaudit.base import files
from dpaudit.base.errors import (
    DpAuditError,
    InconclusiveError,
    InputError,
    JournalError,
    TamperedError,
)
from dpaudit.base.processes import uninterrupted
from dpaudit.project import AuditPair
from dpaudit.project.foreign import error_summary

CHUNKS = 64
"""Chunks of a stage, about: enough for any number of workers and a fine journal."""
LARGEST_CHUNK = 16_384
TASKS = 8
"""Tasks of a stage for each worker, about: each starts a pair of children, which takes time."""
CLUSTER = 8
"""Workers that a cluster is taken to have."""


class Stage(IntEnum):
    """A purpose of runs; stages never share a run."""

    CHECK = 0
    PILOT = 1
    TEST = 2
    SEARCH = 3
    VOCABULARY = 4
    ENCODED_PILOT = 5


class Side(IntEnum):
    """One of the two neighbours."""

    X = 0
    X_PRIME = 1

    @property
    def where(self) -> str:
        """Name the runs in sentences."""
        return "on x" if self is Side.X else "on x'"


@dataclass(frozen=True)
class Chunk:
    """Consecutive runs of one stage, on both sides.

    Attributes:
        stage: what they are for.
        number: of the chunk within the stage.
        start: runs of the stage that come before.
        size: runs on each side.
    """

    stage: Stage
    number: int
    start: int
    size: int

    def runs_on(self, side: Side) -> str:
        """Name the runs in sentences."""
        return f"in runs {self.start + 1} to {self.start + self.size} {side.where}"


def chunks(stage: Stage, runs: int) -> Iterator[Chunk]:
    """The chunks of a stage. Their sizes depend on the number of runs alone."""
    size = min(LARGEST_CHUNK, -(-runs // CHUNKS))
    for number, start in enumerate(range(0, runs, max(1, size))):
        yield Chunk(stage, number, start, min(size, runs - start))


FORMAT = "dpaudit-trials/2"


class TrialJournal:
    """A file to which finished chunks are appended, one open experiment at a time.

    Args:
        path: of the file.
        identity: public facts that determine every run, JSON values.

    Raises:
        InputError: if the file belongs to another experiment or cannot be written.
        TamperedError: if a line is damaged.
    """

    def __init__(self, path: Path | str, identity: dict[str, Any]) -> None:
        self._path = Path(path)
        self._header = {"format": FORMAT, "experiment": files.digest(identity)}
        try:
            self._finished = self._read()
            self._file = self._path.open("ab", buffering=0)
        except OSError as error:
            raise InputError(
                f"journal {files.shown(path)} cannot be used: {error.strerror}; give a "
                "writable path."
            ) from None

    def finished(self, stage: int) -> dict[int, Both]:
        """The chunks of a stage that were finished before, by number."""
        return self._finished.get(stage, {})

    def append(self, stage: int, number: int, both: Both) -> None:
        """Record a finished chunk; on disk before this returns."""
        record = {"stage": int(stage), "number": number, "outputs": [*map(_packed, both)]}
        length = os.fstat(self._file.fileno()).st_size
        try:
            line = _line(record | {"checksum": self._checksum(record)})
            if self._file.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file.fileno(), length)
            raise JournalError(
                f"journal {files.shown(self._path)} cannot be written: {error.strerror}; the "
                "runs in it are kept."
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _checksum(self, record: dict[str, Any]) -> str:
        return files.digest([self._header, record])

    def _read(self) -> dict[int, dict[int, Both]]:
        """The finished chunks; a line that was cut off by a kill is removed."""
        header = _line(self._header)
        if self._path.exists() and not self._path.is_file():
            raise InputError(
                f"journal {files.shown(self._path)} is not a regular file; give another."
            )
        data = self._path.read_bytes() if self._path.exists() else b""
        if not header.startswith(data[: len(header)]):  # nothing of it is touched
            raise InputError(
                f"journal {files.shown(self._path)} belongs to another experiment (mechanism, "
                "pair, seed or runs); give another path."
            )
        lines = data.splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):
            os.truncate(self._path, sum(map(len, lines[:-1])))
            lines.pop()
        if not lines:
            self._path.write_bytes(header)
        finished: dict[int, dict[int, Both]] = {}
        for place, line in enumerate(lines[1:], start=2):
            try:
                record = json.loads(line)
                whole = record.pop("checksum") == self._checksum(record)
                x, x_prime = map(_unpacked, record["outputs"])
                chunks = finished.setdefault(record["stage"], {})
            except (ValueError, KeyError, TypeError, AttributeError):
                whole = False
            if not whole:
                raise TamperedError(
                    f"line {place} of journal {files.shown(self._path)} is damaged; delete "
                    "the line, and its runs will be repeated."
                )
            chunks[record["number"]] = x, x_prime
        return finished


def _line(record: dict[str, Any]) -> bytes:
    return (files.canonical_json(record) + "\n").encode()


def _packed(array: NDArray[np.float64]) -> str:
    buffer = BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return base64.b64encode(buffer.getvalue()).decode()


def _unpacked(text: str) -> NDArray[np.float64]:
    array: NDArray[np.float64] = np.load(BytesIO(base64.b64decode(text)), allow_pickle=False)
    return array


Release = Callable[[Any, int, np.random.Generator], Any]
"""``release(data, size, rng)``: ``size`` independent outputs, shape (size, …)."""

Encoder = Callable[[Sequence[Any]], NDArray[Any]]
"""Outputs of any kind to as many rows."""

CHILDREN = 8
"""Child processes that draw the tests of a side, one after the other; 0 for none. What they give is
the same. A pilot has a quarter of the children."""


def groups(parts: Iterable[Chunk], runs: int) -> Iterator[list[Chunk]]:
    """Those of the chunks of a stage that one child draws, by their numbers."""
    count = sum(1 for _ in chunks(Stage.TEST, runs))

    def child(part: Chunk) -> int:
        children = CHILDREN if part.stage is Stage.TEST else CHILDREN // 4
        return part.number * max(1, children) // count

    return (list(group) for _, group in groupby(parts, key=child))


class OneSidedError(InconclusiveError):
    """The code fails on the data of one side."""


class OneSideNotPlainError(OneSidedError):
    """It fails by what could be encoded, such as an exception."""


@dataclass(frozen=True)
class Experiment:
    """Code, two neighbours to run it on, and the randomness of all runs.

    Attributes:
        release: the code under attack.
        pair: the neighbours.
        seed: of the whole experiment.
        timeout: seconds that one run may take; None for any time.
        one_by_one: whether the code is asked for one output a call. Code that makes the same batch
            whatever its seed would otherwise pass for independent runs.
        memory: MB that the code may take; None for any.
        own_randomness: whether the code draws from elsewhere than the generator it is given.
        encoder: makes rows of the outputs of a chunk, whatever they are; without one they must be
            plain numbers of one shape.
    """

    release: Release
    pair: AuditPair
    seed: int
    timeout: float | None = None
    one_by_one: bool = False
    memory: float | None = None
    own_randomness: bool = False
    encoder: Encoder | None = None

    def generator(self, stage: Stage, side: Side, number: int) -> np.random.Generator:
        """The generator of a chunk: a spawned child of the experiment's seed."""
        return np.random.default_rng(
            np.random.SeedSequence(self.seed, spawn_key=(int(stage), int(side), number))
        )

    def outputs(self, side: Side, chunk: Chunk) -> NDArray[np.float64]:
        """The outputs of one side of a chunk, shape (size, …), checked; drawn in this process.

        Raises:
            NotPlainError: if the code raises, or returns what has to be encoded first.
            InputError: if it exits, or gives another number of outputs.
            InconclusiveError: if it hangs, or there is too little memory.
        """
        fresh = copies(self.pair.x if side is Side.X else self.pair.x_prime)
        rng = self.generator(chunk.stage, side, chunk.number)
        where, runs = side.where, chunk.runs_on(side)
        limit = None if self.timeout is None else self.timeout * chunk.size
        tested = chunk.stage is Stage.TEST  # too late to encode anything

        def call() -> Any:
            if self.encoder is not None:
                return self.encoder(self._each(fresh, chunk.size, rng))
            if not self.one_by_one:
                return self.release(fresh(), chunk.size, rng)
            single = [np.asarray(self.release(fresh(), 1, rng)) for _ in range(chunk.size)]
            return np.concatenate(single)

        try:
            raw = within_time(limit, call)
        except TrialTimeoutError:
            raise InconclusiveError(self._too_slow(runs)) from None
        except MemoryError:
            allowed = "" if self.memory is None else f" of {self.memory:g} MB"
            raise InconclusiveError(
                f"the mechanism needs more than its memory{allowed} {runs}; allow more."
            ) from None
        except DpAuditError as error:
            if isinstance(error, ScoreError) or (isinstance(error, NotPlainError) and not tested):
                raise
            raise RefusedError(f"the mechanism failed {where}: {error_summary(error)}") from None
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - foreign code may raise even SystemExit
            kind = NotPlainError if isinstance(error, Exception) and not tested else InputError
            said = error_summary(error, f" {runs}").removesuffix(".")
            raise kind(f"the mechanism raised {said}; it must run on both data sets.") from None
        return raw if self.encoder is not None else check_outputs(raw, chunk.size, runs)

    def _each(self, fresh: Callable[[], Any], size: int, rng: np.random.Generator) -> Sequence[Any]:
        """The outputs of so many runs as they are, with the exceptions of calls for one run."""
        raw = getattr(self.release, "raw", self.release)
        alone = self.one_by_one or not getattr(self.release, "batched", True)
        number = 1 if alone else size

        def call() -> Sequence[Any]:
            return singles(raw(fresh(), number, rng), number)

        return [attempt(lambda: call()[0]) for _ in range(size)] if alone else call()

    def _too_slow(self, runs: str) -> str:
        return (
            f"the mechanism took more than {self.timeout:g} s a run {runs}; it hangs, or needs a "
            "larger timeout."
        )

    def both(self, chunk: Chunk, scores: Sequence[Score] = ()) -> Both:
        """Outputs (or, given scores, those) of both sides of a chunk, drawn in children."""
        return self.several([chunk], scores)[0]

    def several(self, parts: Sequence[Chunk], scores: Sequence[Score]) -> list[Both]:
        """The same of several chunks, in one pair of children."""
        with self.drawing() as draw:
            return [scored(draw(chunk), scores) for chunk in parts]

    @contextlib.contextmanager
    def drawing(self, reseeded: Sequence[Any] | None = None) -> Iterator[Callable[[Chunk], Both]]:
        """Return what draws both sides of chunks, each side in a child process of its own.

        Args:
            reseeded: generators that get fresh seeds; those of the process where randomness is own.

        Raises:
            InputError: (when it draws) if the code raises, or returns what cannot be tested.
            InconclusiveError: if it ends its process, hangs, needs too much memory, or fails on one
                side only.
        """
        draws: list[Callable[[Chunk], Any]] = [partial(self.outputs, side) for side in Side]
        reseeded = self._kept() if reseeded is None else reseeded
        with contextlib.ExitStack() as stack:
            if CHILDREN:
                with uninterrupted():
                    draws = [
                        stack.enter_context(Child(draw, self.memory, reseeded)).ask
                        for draw in draws
                    ]
            yield partial(self._both, draws)

    def _kept(self) -> Sequence[Any]:
        return generators() if self.own_randomness else ()

    def _both(self, draws: Sequence[Callable[[Chunk], Any]], chunk: Chunk) -> Both:
        drawn: list[NDArray[np.float64]] = []
        failures: list[DpAuditError] = []
        for side, draw in zip(Side, draws, strict=True):
            runs = chunk.runs_on(side)
            try:
                drawn.append(draw(chunk))
            except EndedError as how:
                failures.append(
                    InconclusiveError(f"the mechanism ended its process {runs}: {how}.")
                )
            except HangsError:
                failures.append(InconclusiveError(self._too_slow(runs)))
            except (InputError, InconclusiveError) as error:
                failures.append(error)
        if len(failures) == 1 and not isinstance(failures[0], RefusedError):
            (failure,) = failures
            kind = OneSidedError if isinstance(failure, InputError) else InconclusiveError
            raise (OneSideNotPlainError if isinstance(failure, NotPlainError) else kind)(
                f"{str(failure).rstrip('.')}; the same runs on the other side ended normally, "
                "so the failure itself may distinguish the neighbours."
            )
        if failures:
            raise failures[0]
        return drawn[0], drawn[1]

    def drawn(self, parts: Iterable[Chunk], runs: int) -> Iterator[Both]:
        """Both sides of chunks of a stage of so many runs, a few chunks in one pair of children."""
        reseeded = self._kept()
        for group in groups(parts, runs):
            with self.drawing(reseeded) as draw:
                yield from map(draw, group)

    @classmethod
    def of(cls, release: Release, pair: AuditPair, execution: Execution) -> Experiment:
        """The experiment that an execution asks for; of code without a generator, its own draws."""
        own = execution.own_randomness
        if isinstance(release, BlackBox):
            release, own = release.within(execution.timeout), own or not release.takes_rng
        return cls(
            release,
            pair,
            execution.known_seed(),
            execution.timeout,
            memory=execution.memory,
            own_randomness=own,
        )

    @contextlib.contextmanager
    def trials(self, execution: Execution, identity: dict[str, Any]) -> Iterator[Trials]:
        """Everything that runs need while an audit lasts: its processes and its journal.

        Args:
            execution: where to run, and what to keep.
            identity: public facts that determine every run, JSON values.

        Raises:
            InputError: if the journal belongs to another experiment.
        """
        with contextlib.ExitStack() as stack:
            journal = None
            if execution.journal is not None:
                journal = stack.enter_context(TrialJournal(execution.journal, identity))
            yield Trials(self, execution, stack.enter_context(workers(execution)), journal)


@dataclass
class Trials:
    """The stages of one experiment, run chunk by chunk and counted.

    Attributes:
        experiment: what is run.
        execution: how many runs are planned, and who is told how many are done.
        mapped: where chunks are run.
        journal: of finished chunks, or None.
    """

    experiment: Experiment
    execution: Execution
    mapped: TaskMap
    journal: TrialJournal | None
    _done: int = field(default=0, init=False)
    _seen: list[Both] = field(default_factory=list, init=False)
    _stage: tuple[Stage, int] = field(default=(Stage.CHECK, 0), init=False)
    _names: tuple[str, ...] = field(default=(), init=False)

    def stage(
        self, stage: Stage, runs: int, scores: Sequence[Score] = ()
    ) -> Generator[Both, None, None]:
        """The chunks of a stage, in order; a consumer that stops early starts no further ones.

        Given scores, outputs are rows of those, shape (n, scores).
        """
        self._seen, self._stage = [], (stage, runs)
        names = getattr(self.experiment.encoder, "names", ())
        self._names = tuple(score.name for score in scores) if scores else names
        journal = None if stage is Stage.VOCABULARY else self.journal
        # One number in the journal for stage and vocabulary: rows of another one are not the same.
        place = stage + len(Stage) * getattr(self.experiment.encoder, "number", 0)
        known = {} if journal is None else journal.finished(place)
        todo = [chunk for chunk in chunks(stage, runs) if chunk.number not in known]
        with contextlib.closing(self._fresh(todo, runs, scores)) as fresh:
            for chunk in chunks(stage, runs):
                both = known.get(chunk.number)
                if both is None:
                    both = next(fresh)
                    if journal is not None:
                        journal.append(place, chunk.number, both)
                self._done += chunk.size
                if self.execution.progress is not None:
                    self.execution.progress(self._done, self.execution.runs)
                if chunk.start < MOST_RUNS:
                    self._seen.append(both)
                yield both

    def _fresh(
        self, todo: Sequence[Chunk], runs: int, scores: Sequence[Score]
    ) -> Generator[Both, None, None]:
        if self.execution.workers > 1 or self.execution.dask is not None:
            tasks = TASKS * (self.execution.workers if self.execution.dask is None else CLUSTER)
            size = max(1, len(todo) // tasks)
            parts = [todo[start : start + size] for start in range(0, len(todo), size)]
            for drawn in self.mapped(partial(self.experiment.several, scores=scores), parts):
                yield from drawn
        else:
            yield from (scored(both, scores) for both in self.experiment.drawn(todo, runs))

    def whole(self, stage: Stage, runs: int) -> Both:
        """All of a stage, each side of shape (runs, …).

        Raises:
            InconclusiveError: if they are not independent.
        """
        xs, x_primes = zip(*self.stage(stage, runs), strict=True)
        self.require_independent()
        return np.concatenate(xs), np.concatenate(x_primes)

    def require_independent(self) -> None:
        """Nothing, if what was drawn of the last stage could be independent.

        Raises:
            InconclusiveError: if it is not.
        """
        parts = list(chunks(*self._stage))
        shared = [sum(part.size for part in group) for group in groups(parts, self._stage[1])]
        xs, x_primes = zip(*self._seen, strict=True)
        both = np.concatenate(xs), np.concatenate(x_primes)
        calls, names, shape = [part.size for part in parts], self._names, both[0].shape[1:]

        def name(column: int) -> str:
            if names or math.prod(shape) == 1:
                return names[column] if names else ""
            return entry_name(("output", shape[1:]), column)

        require_independent(both, shared, calls, name)


def scored(both: Both, scores: Sequence[Score]) -> Both:
    """Outputs, or where scores are given rows of them, shape (n, scores)."""
    if not scores:
        return both
    x, x_prime = (np.stack([_scored(each, side) for each in scores], axis=1) for side in both)
    return x, x_prime


def _scored(score: Score, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores; 0 for outputs that are NaN, which no pilot has shown."""
    odd = np.isnan(outputs.reshape(len(outputs), -1)).any(axis=1)
    if not odd.any():
        return score_outputs(score, outputs)
    known = np.where(odd.reshape(-1, *[1] * (outputs.ndim - 1)), 0.0, outputs)
    return np.where(odd, 0.0, score_outputs(score, known))
