"""Outsourced Bayesian optimisation (Kharkovskii, Dai & Low 2020), and a curator that is private."""

from private_bo.outsourced.curators import CertifiedCurator, Curator, RowNoise
from private_bo.outsourced.inputs import InputModel
from private_bo.outsourced.likelihood import Hyperparameters
from private_bo.outsourced.modeller import Modeller, Search
from private_bo.outsourced.problems import OutsourcedProblem, grid_problem, loans, properties
from private_bo.outsourced.protocol import AnswerDesk, Query, Release

__all__ = [
    "AnswerDesk",
    "CertifiedCurator",
    "Curator",
    "Hyperparameters",
    "InputModel",
    "Modeller",
    "OutsourcedProblem",
    "Query",
    "Release",
    "RowNoise",
    "Search",
    "grid_problem",
    "loans",
    "properties",
]
