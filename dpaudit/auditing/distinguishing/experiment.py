"""An experiment: one release, two neighbours, one seed, and a generator for every chunk of runs.

Every chunk has a seed of its own, spawned from the experiment's seed by stage, side and number of
the chunk. So its runs are the same in whatever process, order or session they are drawn, and a
journal of finished chunks lets an experiment go on after a kill.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.distinguishing.journal import TrialJournal
from dpaudit.auditing.distinguishing.limits import TrialTimeoutError, within_time
from dpaudit.auditing.distinguishing.outputs import checked_outputs, copies
from dpaudit.auditing.distinguishing.scores import Score, score_outputs
from dpaudit.auditing.execution import Execution, Mapped, workers
from dpaudit.errors import DpAuditError, InputError
from dpaudit.project import AuditPair

__all__ = ["Both", "Chunk", "Experiment", "Release", "Side", "Stage", "Trials", "chunks"]

Release = Callable[[Any, int, np.random.Generator], Any]
"""``release(data, size, rng)``: ``size`` independent outputs, shape (size, …)."""

Both = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Outputs, or their scores, on x and on x'."""

CHUNKS = 64
"""Chunks of a stage, about: enough for any number of workers and a fine journal."""
LARGEST_CHUNK = 16_384


class Stage(IntEnum):
    """What runs are for; the stages never share a run."""

    CHECK = 0
    PILOT = 1
    TEST = 2
    SEARCH = 3


class Side(IntEnum):
    """Which of the two neighbours is run on."""

    X = 0
    X_PRIME = 1


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


def chunks(stage: Stage, runs: int) -> Iterator[Chunk]:
    """The chunks of a stage. Their sizes depend on the number of runs alone."""
    size = min(LARGEST_CHUNK, -(-runs // CHUNKS))
    for number, start in enumerate(range(0, runs, max(1, size))):
        yield Chunk(stage, number, start, min(size, runs - start))


@dataclass(frozen=True)
class Experiment:
    """What is run, on what, and with which randomness.

    Attributes:
        release: the code under attack.
        pair: the neighbours.
        seed: of the whole experiment.
        timeout: seconds that one run may take; None for any time.
        one_by_one: whether the code is asked for one output a call. Code that makes the same batch
            whatever its seed would otherwise pass for independent runs.
    """

    release: Release
    pair: AuditPair
    seed: int
    timeout: float | None = None
    one_by_one: bool = False

    def generator(self, stage: Stage, side: Side, number: int) -> np.random.Generator:
        """The generator of a chunk: a spawned child of the experiment's seed."""
        return np.random.default_rng(
            np.random.SeedSequence(self.seed, spawn_key=(int(stage), int(side), number))
        )

    def outputs(self, side: Side, chunk: Chunk) -> NDArray[np.float64]:
        """The outputs of one side of a chunk, shape (size, …), checked.

        Raises:
            InputError: if the code raises, hangs, or returns what cannot be tested.
        """
        fresh = copies(self.pair.x if side is Side.X else self.pair.x_prime)
        rng = self.generator(chunk.stage, side, chunk.number)
        where = "on x" if side is Side.X else "on x'"
        runs = f"in runs {chunk.start + 1} to {chunk.start + chunk.size} {where}"
        limit = None if self.timeout is None else self.timeout * chunk.size

        def call() -> Any:
            if not self.one_by_one:
                return self.release(fresh(), chunk.size, rng)
            single = [np.asarray(self.release(fresh(), 1, rng)) for _ in range(chunk.size)]
            return np.concatenate(single)

        try:
            raw = within_time(limit, call)
        except TrialTimeoutError:
            raise InputError(
                f"the mechanism took more than {self.timeout:g} s a run {runs}; it hangs, or needs "
                "a larger timeout."
            ) from None
        except DpAuditError as error:
            raise InputError(f"the mechanism failed {where}: {_sentence(error)}") from None
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - foreign code may raise even SystemExit
            raise InputError(
                f"the mechanism raised {type(error).__name__} {runs}: {_sentence(error)}"
            ) from None
        return checked_outputs(raw, chunk.size, runs)

    def both(self, chunk: Chunk, score: Score | None = None) -> Both:
        """Outputs (or, given a score, their scores) of both sides of a chunk."""
        x, x_prime = (self.outputs(side, chunk) for side in Side)
        return (
            (x, x_prime)
            if score is None
            else (score_outputs(score, x), score_outputs(score, x_prime))
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


class Trials:
    """The stages of one experiment, run chunk by chunk and counted.

    Args:
        experiment: what is run.
        execution: how many runs are planned, and who is told how many are done.
        mapped: where chunks are run.
        journal: of finished chunks, or None.
    """

    def __init__(
        self,
        experiment: Experiment,
        execution: Execution,
        mapped: Mapped,
        journal: TrialJournal | None,
    ) -> None:
        self._experiment = experiment
        self.pair = experiment.pair
        self._execution = execution
        self._mapped = mapped
        self._journal = journal
        self._done = 0

    def stage(
        self, stage: Stage, runs: int, score: Score | None = None
    ) -> Generator[Both, None, None]:
        """The chunks of a stage, in order; a consumer that stops early starts no further ones."""
        known = {} if self._journal is None else self._journal.finished(stage)
        todo = [chunk for chunk in chunks(stage, runs) if chunk.number not in known]
        fresh = self._mapped(partial(self._experiment.both, score=score), todo)
        for chunk in chunks(stage, runs):
            both = known.get(chunk.number)
            if both is None:
                both = next(fresh)
                if self._journal is not None:
                    self._journal.append(stage, chunk.number, both)
            self._done += chunk.size
            if self._execution.progress is not None:
                self._execution.progress(self._done, self._execution.runs)
            yield both

    def whole(self, stage: Stage, runs: int, score: Score | None = None) -> Both:
        """All of a stage, each side of shape (runs, …)."""
        xs, x_primes = zip(*self.stage(stage, runs, score), strict=True)
        return np.concatenate(xs), np.concatenate(x_primes)


def _sentence(error: BaseException) -> str:
    """The first line of an error's message, at most 200 characters, with a full stop."""
    text = (str(error) or "no message").splitlines()[0][:200].rstrip()
    return text if text.endswith(".") else f"{text}."
