"""The Rényi orders at which divergences are kept."""

from __future__ import annotations

import numpy as np

from dpaudit.mechanisms.pairs import Floats

REAL: Floats = 1 + np.concatenate(
    [np.geomspace(1e-5, 0.1, 40, endpoint=False), np.geomspace(0.1, 15, 90)]
)
"""Real orders to 16."""
WHOLE = tuple(range(17, 33)) + tuple(
    sorted({round(32 * 1.1**step) for step in range(1, 37)} | {64, 128, 256, 512, 1024})
)
"""Integer orders to 1024."""
ORDERS: Floats = np.concatenate([REAL, np.array(WHOLE, dtype=np.float64), 2.0 ** np.arange(11, 25)])
"""Orders α at which curves are kept: those two, and powers of two."""
