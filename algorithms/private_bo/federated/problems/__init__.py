"""Tasks of federated optimisation: random functions, landmine fields and writers of digits.

The first two are those of Dai, Low & Jaillet 2021 (Section 5); the third stands in for their
classification tasks and needs no download.
"""

from private_bo.federated.problems.base import (
    Distorted,
    FederatedProblem,
    Objective,
    WithoutAgent,
    unit_grid,
)
from private_bo.federated.problems.synthetic import synthetic
from private_bo.federated.problems.tuning import digits, landmines

__all__ = [
    "Distorted",
    "FederatedProblem",
    "Objective",
    "WithoutAgent",
    "digits",
    "landmines",
    "synthetic",
    "unit_grid",
]
