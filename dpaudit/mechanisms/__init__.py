"""Mechanisms: what may add noise, and what that costs."""

from dpaudit.mechanisms.base import Mechanism, Norm
from dpaudit.mechanisms.black_box import ApproximateBlackBox, ConcentratedBlackBox, PureBlackBox
from dpaudit.mechanisms.continual import (
    BinaryTree,
    BufferedToeplitz,
    ContinualGaussian,
    ContinualLaplace,
    HonakerTree,
    SquareRootToeplitz,
)
from dpaudit.mechanisms.exponential import ExponentialMechanism
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
    "BinaryTree",
    "BufferedToeplitz",
    "ConcentratedBlackBox",
    "ContinualGaussian",
    "ContinualLaplace",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DominatingPair",
    "ExponentialMechanism",
    "FinitePair",
    "Gaussian",
    "GaussianPair",
    "HonakerTree",
    "Laplace",
    "LaplacePair",
    "Mechanism",
    "Norm",
    "Opaque",
    "PureBlackBox",
    "RandomizedResponse",
    "SquareRootToeplitz",
    "approximate_pair",
]
