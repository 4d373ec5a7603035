"""Released noise as its declared law sees it, for tests of whether it was drawn as declared.

Every draw is turned into its *tail*, the declared probability of noise at least as large, and its
sign. Under the declared law tails are independent and uniform. What turns the draws of each
mechanism is in ``dpaudit/auditing/noise/tails.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.mechanisms.pairs import Floats


@dataclass(frozen=True, eq=False)
class Tails:
    """Draws as the declared law sees them.

    Attributes:
        tails: declared probability of noise as large as each draw, shape (n,).
        positive: the sign of each draw, shape (n,).
        sizes: absolute draws over their declared mean, shape (n,); empty where that has no meaning.
        normal: absolute standardised draws where the law is normal, shape (n,), else None.
    """

    tails: Floats
    positive: NDArray[np.bool_]
    sizes: Floats
    normal: Floats | None = None

    @classmethod
    def joined(cls, parts: Sequence[Tails]) -> Tails:
        """All draws of several parts of one law."""
        normal = [part.normal for part in parts if part.normal is not None]
        return cls(
            np.concatenate([part.tails for part in parts]),
            np.concatenate([part.positive for part in parts]),
            np.concatenate([part.sizes for part in parts]),
            np.concatenate(normal) if len(normal) == len(parts) else None,
        )
