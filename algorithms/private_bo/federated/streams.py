"""One seed for a run, and a generator of its own for every agent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_AGENTS, _WORDS = 1, 4


@dataclass(frozen=True)
class Streams:
    """Generators that depend on the seed and on who draws, not on who else runs, or where.

    The ledger's noise and samples come from none of them.

    Attributes:
        entropy: the seed, as words of 32 bits.

    >>> one = Streams((7,)).agent(3).random()
    >>> one == Streams((7,)).agent(3).random(), one == Streams((7,)).agent(4).random()
    (True, False)
    """

    entropy: tuple[int, ...]

    @classmethod
    def of(cls, rng: np.random.Generator) -> Streams:
        """Streams of a seed that the generator draws."""
        words = rng.integers(0, 2**32, size=_WORDS, dtype=np.uint32)
        return cls(tuple(int(word) for word in words))

    def agent(self, agent: int) -> np.random.Generator:
        """Everything that agent n draws."""
        key = (_AGENTS, agent)
        return np.random.default_rng(np.random.SeedSequence(self.entropy, spawn_key=key))
