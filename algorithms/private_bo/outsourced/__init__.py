"""Outsourced Bayesian optimisation (Kharkovskii, Dai & Low 2020), and a curator that is private.

In the paper a curator publishes a random projection of its private rows once, and a modeller runs
GP-UCB on it, asking for outputs by row number. Its privacy theorem is false for more rows than
columns; so :class:`Curator` is shipped to the letter, as a claim without a proof, and
``audits/outsourced`` refutes it. :class:`CertifiedCurator` has the same interface, adds noise to
every entry, and is certified; its modeller knows the law of that noise. Begin with
:mod:`~private_bo.outsourced.curators` (Algorithm 1, and the proof of the certified one) and
``modeller`` (Algorithm 2); ``subject`` holds plan and protocol. The tables are in ``experiments``.
"""

from private_bo.outsourced.curators import CertifiedCurator, Curator, RowNoise
from private_bo.outsourced.inputs import InputModel
from private_bo.outsourced.likelihood import Hyperparameters
from private_bo.outsourced.modeller import Modeller, Search
from private_bo.outsourced.problems import OutsourcedProblem, grid_problem, loans, properties
from private_bo.outsourced.protocol import AnswerDesk, Query, Release
from private_bo.outsourced.subject import OutsourcingCurator

__all__ = [
    "AnswerDesk",
    "CertifiedCurator",
    "Curator",
    "Hyperparameters",
    "InputModel",
    "Modeller",
    "OutsourcedProblem",
    "OutsourcingCurator",
    "Query",
    "Release",
    "RowNoise",
    "Search",
    "grid_problem",
    "loans",
    "properties",
]
