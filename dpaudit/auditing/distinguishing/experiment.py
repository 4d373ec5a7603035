"""An experiment: one release, two neighbours, one seed, and a generator for every chunk of runs.

Every chunk has a seed of its own, spawned from the experiment's seed by stage, side and number of
the chunk. So its runs are the same in whatever process, order or session they are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.distinguishing.limits import TrialTimeoutError, within_time
from dpaudit.errors import DpAuditError, InputError
from dpaudit.project import AuditPair

__all__ = ["Chunk", "Experiment", "Release", "Side", "Stage", "chunks", "copies"]

Release = Callable[[Any, int, np.random.Generator], Any]
"""``release(data, size, rng)``: ``size`` independent outputs, shape (size, …)."""

CHUNKS = 64
"""Chunks of a stage, about: enough for any number of workers and a fine journal."""
LARGEST_CHUNK = 16_384


_FLAT = frozenset({int, float, bool, str, bytes, type(None)})


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
    """

    release: Release
    pair: AuditPair
    seed: int
    timeout: float | None = None

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
        where = f"on {'x' if side is Side.X else chr(120) + chr(39)}"
        runs = f"in runs {chunk.start + 1} to {chunk.start + chunk.size} {where}"
        limit = None if self.timeout is None else self.timeout * chunk.size
        try:
            raw = within_time(limit, lambda: self.release(fresh(), chunk.size, rng))
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


def copies(data: Any) -> Callable[[], Any]:
    """A maker of copies of data as they are now, so that code may change what it is given.

    Containers and arrays are copied, whatever else they hold is shared.

    >>> fresh = copies({"rows": [1, 2]})
    >>> fresh()["rows"].append(3)
    >>> fresh()
    {'rows': [1, 2]}
    """
    kept = _copied(data)
    return lambda: _copied(kept)


def _copied(data: Any) -> Any:
    kind = type(data)
    if kind is list or kind is tuple:
        if _FLAT.issuperset(map(type, data)):  # quick, and most data are
            return kind(data)
        return kind([_copied(item) for item in data])
    if kind is dict:
        return {key: _copied(item) for key, item in data.items()}
    if kind is set or isinstance(data, np.ndarray):
        return data.copy()
    return data


def _sentence(error: BaseException) -> str:
    """The first line of an error's message, at most 200 characters, with a full stop."""
    text = (str(error) or "no message").splitlines()[0][:200].rstrip()
    return text if text.endswith(".") else f"{text}."


def checked_outputs(raw: Any, size: int, runs: str) -> NDArray[np.float64]:
    """Outputs as floats, shape (size, …).

    Raises:
        InputError: if they are no numbers, NaN, of changing shapes or of the wrong number.
    """
    try:
        array = np.asarray(raw)
    except ValueError:
        raise InputError(
            f"the mechanism returned outputs of changing shapes {runs}; pad them to one shape."
        ) from None
    if array.dtype.kind not in "biuf":
        shown = repr(raw if array.ndim == 0 else array.ravel()[:1].tolist())
        raise InputError(
            f"the mechanism returned {shown:.60} {runs}; every output must be a number or an array "
            "of numbers, so encode other answers as numbers."
        )
    if array.ndim == 0 or len(array) != size:
        raise InputError(
            f"the mechanism returned shape {array.shape} {runs}; its first axis must be the "
            f"{size} runs."
        )
    if array.size == 0:
        raise InputError(f"the mechanism returned nothing {runs}; every run needs an output.")
    numbers = array.astype(np.float64)
    if np.isnan(numbers).any():
        first = int(np.argmax(np.isnan(numbers.reshape(size, -1)).any(axis=1)))
        raise InputError(
            f"the mechanism returned NaN {runs} (the {first + 1}. of them); return a number for "
            "every input."
        )
    return numbers
