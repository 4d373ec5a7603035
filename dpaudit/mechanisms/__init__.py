"""Mechanisms: what may add noise, and what that costs."""

from dpaudit.mechanisms.base import Mechanism, Norm
from dpaudit.mechanisms.black_box import (
    ApproximateBlackBox,
    ConcentratedBlackBox,
    PureBlackBox,
)
from dpaudit.mechanisms.gaussian import DiscreteGaussian, Gaussian
from dpaudit.mechanisms.laplace import DiscreteLaplace, Laplace
from dpaudit.mechanisms.opaque import Opaque
from dpaudit.mechanisms.pairs import (
    DominatingPair,
    FinitePair,
    GaussianPair,
    LaplacePair,
    approximate_pair,
)
from dpaudit.mechanisms.randomized_response import RandomizedResponse

__all__ = [
    "ApproximateBlackBox",
    "ConcentratedBlackBox",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DominatingPair",
    "FinitePair",
    "Gaussian",
    "GaussianPair",
    "Laplace",
    "LaplacePair",
    "Mechanism",
    "Norm",
    "Opaque",
    "PureBlackBox",
    "RandomizedResponse",
    "approximate_pair",
]
