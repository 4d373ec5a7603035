"""Finite feature maps of kernels, with proved errors."""

from private_bo.gp.features.base import AdditiveFeatures, FeatureMap
from private_bo.gp.features.eigen import EigenFeatures
from private_bo.gp.features.fourier import QuadratureFeatures, RandomFourierFeatures

__all__ = [
    "AdditiveFeatures",
    "EigenFeatures",
    "FeatureMap",
    "QuadratureFeatures",
    "RandomFourierFeatures",
]
