"""Gaussian processes on finite domains: kernels, exact and Nyström posteriors, information gain."""

from __future__ import annotations

from private_bo.gp.domains import Ball, Box, FeatureDomain, FiniteDomain
from private_bo.gp.features import (
    AdditiveFeatures,
    EigenFeatures,
    FeatureMap,
    QuadratureFeatures,
    RandomFourierFeatures,
)
from private_bo.gp.kernels import ARD, Kernel, Matern, SquaredExponential, TableKernel
from private_bo.gp.nystrom import (
    Coordinates,
    NystromEmbedder,
    NystromEmbedding,
    NystromPosterior,
    oversampling,
    variance_ratio,
)
from private_bo.gp.posterior import (
    FinitePosterior,
    InformationGain,
    Storage,
    greedy_information_gain,
)

__all__ = [
    "ARD",
    "AdditiveFeatures",
    "Ball",
    "Box",
    "Coordinates",
    "EigenFeatures",
    "FeatureDomain",
    "FeatureMap",
    "FiniteDomain",
    "FinitePosterior",
    "InformationGain",
    "Kernel",
    "Matern",
    "NystromEmbedder",
    "NystromEmbedding",
    "NystromPosterior",
    "QuadratureFeatures",
    "RandomFourierFeatures",
    "SquaredExponential",
    "Storage",
    "TableKernel",
    "greedy_information_gain",
    "oversampling",
    "variance_ratio",
]
