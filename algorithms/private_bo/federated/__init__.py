"""Federated Thompson sampling with distributed exploration (Dai, Low & Jaillet 2021).

Agents optimise objectives of their own and send vectors that describe what they have learned; a
trusted server samples agents, clips, and broadcasts noisy averages, one for each sub-region.
Shipped are DP-FTS-DE and DP-FTS with the loss that the paper publishes as their claim and the true
sensitivity of every round as their plan, and FTS-DE, FTS and plain Thompson sampling as
comparators. Begin with :mod:`~private_bo.federated.algorithms`, which holds Algorithms 1 and 2 one
below the other; ``settings`` has the public configuration, ``subject`` what is declared and
claimed. The agents' own posteriors are in ``agent`` and ``own``, the public weights in
``weights``. The same run over real processes is in ``flower``, and Figures 2 to 4 in
``experiments``.
"""

from private_bo.federated.agents import AgentModel, Streams
from private_bo.federated.algorithms import (
    Agents,
    InProcess,
    Recorded,
    Refusal,
    Selected,
    Server,
    Transport,
)
from private_bo.federated.messages import Broadcast, Report
from private_bo.federated.problems import (
    FederatedProblem,
    WithoutAgent,
    digits,
    landmines,
    synthetic,
)
from private_bo.federated.settings import Reliance, Weights
from private_bo.federated.subjects import (
    DPFTS,
    DPFTSDE,
    FTS,
    FTSDE,
    PlainTS,
    SamplingScheme,
    Sensitivity,
)

__all__ = [
    "DPFTS",
    "DPFTSDE",
    "FTS",
    "FTSDE",
    "AgentModel",
    "Agents",
    "Broadcast",
    "FederatedProblem",
    "InProcess",
    "PlainTS",
    "Recorded",
    "Refusal",
    "Reliance",
    "Report",
    "SamplingScheme",
    "Selected",
    "Sensitivity",
    "Server",
    "Streams",
    "Transport",
    "Weights",
    "WithoutAgent",
    "digits",
    "landmines",
    "synthetic",
]
