"""What secret sampling of the units makes of a mechanism's privacy."""

from dpaudit.accounting.amplification import fixed_size, poisson, truncated  # noqa: F401  # they register
from dpaudit.accounting.amplification.base import (
    Amplification,
    DirectedPair,
    PlainPair,
    amplification,
)
from dpaudit.accounting.amplification.reductions import cover, fallback

__all__ = [
    "Amplification",
    "DirectedPair",
    "PlainPair",
    "amplification",
    "cover",
    "fallback",
]
