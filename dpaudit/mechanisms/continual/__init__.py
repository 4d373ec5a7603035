"""Continual release of prefix sums: trees, Toeplitz factorisations, and their mechanisms."""

from dpaudit.mechanisms.continual.buffered import BufferedToeplitz
from dpaudit.mechanisms.continual.factorization import Factorization
from dpaudit.mechanisms.continual.gaussian import ContinualGaussian
from dpaudit.mechanisms.continual.honaker import HonakerTree
from dpaudit.mechanisms.continual.laplace import ContinualLaplace
from dpaudit.mechanisms.continual.noise import NoiseLaw
from dpaudit.mechanisms.continual.toeplitz import BandedToeplitz, SquareRootToeplitz
from dpaudit.mechanisms.continual.trees import BinaryTree

__all__ = [
    "BandedToeplitz",
    "BinaryTree",
    "BufferedToeplitz",
    "ContinualGaussian",
    "ContinualLaplace",
    "Factorization",
    "HonakerTree",
    "NoiseLaw",
    "SquareRootToeplitz",
]
