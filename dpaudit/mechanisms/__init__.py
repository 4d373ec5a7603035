"""Mechanisms: what may add noise, and what that costs."""

from dpaudit.mechanisms.additive import AdditiveNoise, IntegerNoise
from dpaudit.mechanisms.base import Mechanism, Norm, Released
from dpaudit.mechanisms.black_box import ApproximateBlackBox, ConcentratedBlackBox, PureBlackBox
from dpaudit.mechanisms.continual import (
    BandedToeplitz,
    BinaryTree,
    BufferedToeplitz,
    ContinualGaussian,
    ContinualLaplace,
    HonakerTree,
    SquareRootToeplitz,
)
from dpaudit.mechanisms.discrete_gaussian import DiscreteGaussian
from dpaudit.mechanisms.discrete_laplace import DiscreteLaplace
from dpaudit.mechanisms.encodings import SubsetSelection, UnaryEncoding
from dpaudit.mechanisms.exact import ExactSource
from dpaudit.mechanisms.exponential import ExponentialMechanism
from dpaudit.mechanisms.gaussian import Gaussian
from dpaudit.mechanisms.individual import IndividualGaussian
from dpaudit.mechanisms.laplace import Laplace
from dpaudit.mechanisms.noisy_max import NoisyMax, PermuteAndFlip
from dpaudit.mechanisms.opaque import Opaque, StatedNoise
from dpaudit.mechanisms.pairs import (
    DominatingPair,
    FinitePair,
    GaussianPair,
    LaplacePair,
    approximate_pair,
)
from dpaudit.mechanisms.randomized_response import RandomizedResponse
from dpaudit.mechanisms.shuffled import Shuffled
from dpaudit.mechanisms.sparse_vector import SparseVector
from dpaudit.mechanisms.stable_histogram import StableHistogram
from dpaudit.mechanisms.staircase import Staircase
from dpaudit.mechanisms.tails import Tails
from dpaudit.mechanisms.top_k import TopK
from dpaudit.mechanisms.truncated_laplace import TruncatedLaplace
from dpaudit.mechanisms.vector import GaussianVector, LaplaceVector

__all__ = [
    "AdditiveNoise",
    "ApproximateBlackBox",
    "BandedToeplitz",
    "BinaryTree",
    "BufferedToeplitz",
    "ConcentratedBlackBox",
    "ContinualGaussian",
    "ContinualLaplace",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DominatingPair",
    "ExactSource",
    "ExponentialMechanism",
    "FinitePair",
    "Gaussian",
    "GaussianPair",
    "GaussianVector",
    "HonakerTree",
    "IndividualGaussian",
    "IntegerNoise",
    "Laplace",
    "LaplacePair",
    "LaplaceVector",
    "Mechanism",
    "NoisyMax",
    "Norm",
    "Opaque",
    "PermuteAndFlip",
    "PureBlackBox",
    "RandomizedResponse",
    "Released",
    "Shuffled",
    "SparseVector",
    "SquareRootToeplitz",
    "StableHistogram",
    "Staircase",
    "StatedNoise",
    "SubsetSelection",
    "Tails",
    "TopK",
    "TruncatedLaplace",
    "UnaryEncoding",
    "approximate_pair",
]
