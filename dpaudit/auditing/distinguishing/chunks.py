"""The stages of an experiment, and the chunks of runs that they are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

CHUNKS = 64
"""Chunks of a stage, about: enough for any number of workers and a fine journal."""
LARGEST_CHUNK = 16_384


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
