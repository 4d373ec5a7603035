"""Running trials: here, in worker processes or on a cluster, with the same result.

A chunk of runs is a pure function of the experiment and the chunk's number. So it does not matter
where chunks are run; they are handed on in their order, and a journal of finished chunks lets an
experiment go on after a kill.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import validate
from dpaudit.auditing.distinguishing.experiment import Chunk, Experiment, Side, Stage, chunks
from dpaudit.auditing.distinguishing.journal import TrialJournal
from dpaudit.auditing.distinguishing.scores import Score
from dpaudit.errors import InputError

__all__ = ["Execution", "Progress", "Runner"]

Progress = Callable[[int, int], None]
"""Called with the runs done so far and all runs, both sides counted once."""

Both = tuple[NDArray[np.float64], NDArray[np.float64]]

_WAVE = 4  # chunks a worker between two looks at the evidence


@dataclass(frozen=True)
class Execution:
    """Where trials run, and what is kept of them. Results do not depend on it.

    Attributes:
        workers: worker processes of this machine; 1 for none.
        dask: address of a dask scheduler to use instead, or None.
        journal: file in which finished chunks are kept, or None.
        progress: is told how far the runs are.
    """

    workers: int = 1
    dask: str | None = None
    journal: Path | str | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        validate.integer_at_least(1, workers=self.workers)


def run_chunk(experiment: Experiment, score: Score | None, chunk: Chunk) -> Both:
    """Outputs (or, given a score, their scores) of both sides of a chunk."""
    x, x_prime = (experiment.outputs(side, chunk) for side in Side)
    return (x, x_prime) if score is None else (score(x), score(x_prime))


class Runner:
    """Runs the stages of one experiment.

    Args:
        experiment: what is run.
        execution: where.
        total: all runs a side that are planned, for the progress.
    """

    def __init__(self, experiment: Experiment, execution: Execution, total: int) -> None:
        self._experiment = experiment
        self._execution = execution
        self._total = total
        self._done = 0
        self._journal: TrialJournal | None = None

    @contextlib.contextmanager
    def opened(self, identity: dict[str, Any]) -> Iterator[Runner]:
        """Open the journal, if there is one, for an experiment with these public facts.

        Raises:
            InputError: if the journal belongs to another experiment.
        """
        if self._execution.journal is None:
            yield self
            return
        with TrialJournal.open(self._execution.journal, identity) as self._journal:
            yield self

    def stage(self, stage: Stage, runs: int, score: Score | None = None) -> Iterator[Both]:
        """The chunks of a stage, in order; a consumer that stops early starts no further ones."""
        todo = list(chunks(stage, runs))
        known = {} if self._journal is None else self._journal.finished(stage)
        for chunk in islice(todo, len(known)):
            yield self._counted(chunk, known[chunk.number])
        with contextlib.closing(self._fresh(todo[len(known) :], score)) as results:
            for chunk, result in results:
                if self._journal is not None:
                    self._journal.append(chunk, result)
                yield self._counted(chunk, result)

    def whole(self, stage: Stage, runs: int) -> Both:
        """All outputs of a stage, each shape (runs, …)."""
        xs, x_primes = zip(*self.stage(stage, runs), strict=True)
        return np.concatenate(xs), np.concatenate(x_primes)

    def _counted(self, chunk: Chunk, result: Both) -> Both:
        self._done += chunk.size
        if self._execution.progress is not None:
            self._execution.progress(self._done, self._total)
        return result

    def _fresh(
        self, todo: Sequence[Chunk], score: Score | None
    ) -> Generator[tuple[Chunk, Both], None, None]:
        if self._execution.dask is None and self._execution.workers == 1:
            for chunk in todo:
                yield chunk, run_chunk(self._experiment, score, chunk)
            return
        from joblib import Parallel, delayed

        task = delayed(run_chunk)
        with _backend(self._execution) as workers, Parallel() as parallel:
            wave = _WAVE * workers
            for start in range(0, len(todo), wave):
                batch = todo[start : start + wave]
                results = parallel(task(self._experiment, score, chunk) for chunk in batch)
                yield from zip(batch, results, strict=True)


@contextlib.contextmanager
def _backend(execution: Execution) -> Iterator[int]:
    """The settings of joblib for an execution, and the number of workers."""
    from joblib import parallel_config

    if execution.dask is None:
        with parallel_config("loky", n_jobs=execution.workers, inner_max_num_threads=1):
            yield execution.workers
        return
    try:
        from distributed import Client
    except ImportError:
        raise InputError(
            f"dask is {execution.dask!r}, but dask is not installed; install dpaudit[cluster]."
        ) from None
    try:
        client = Client(execution.dask, timeout=10)
    except (OSError, ValueError) as error:
        raise InputError(
            f"dask is {execution.dask!r}; no scheduler answers there ({type(error).__name__})."
        ) from None
    with client, parallel_config("dask", client=client):
        yield max(1, len(client.scheduler_info()["workers"]))
