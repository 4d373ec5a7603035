"""How a case was judged."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tests.benchmarks.soundness.uses import Case


@dataclass
class Verdict:
    """A case as it was judged.

    Attributes:
        misses: kind of the miss ("unsound", "lower end", "crash", "NaN", "slow") and a sentence.
        proved: the guarantee's ε, from below and from above.
        truth: that of the oracle.
        method: the oracle's.
        refused: why there is no guarantee, where that is stated.
        failed: why the oracle has no curve though it should.
    """

    case: Case
    misses: list[tuple[str, str]] = field(default_factory=list)
    proved: tuple[float | None, float] | None = None
    truth: tuple[float, float] | None = None
    method: str = ""
    refused: str = ""
    failed: str = ""
    seconds: float = 0.0

    @property
    def ratio(self) -> float:
        """ε as it is proved over the truth, where that is known to 5 %; else NaN."""
        if self.proved is None or self.truth is None or not math.isfinite(self.proved[1]):
            return math.nan
        low, high = self.truth
        return self.proved[1] / low if low > 0 and high <= 1.05 * low else math.nan
