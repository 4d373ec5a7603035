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

from private_bo.federated.agent import AgentModel
from private_bo.federated.algorithms import Agents, Server
from private_bo.federated.comparators import FTS, FTSDE, PlainTS
from private_bo.federated.dp_fts_de import DPFTS, DPFTSDE
from private_bo.federated.messages import Broadcast, Report
from private_bo.federated.problems import (
    FederatedProblem,
    WithoutAgent,
    digits,
    landmines,
    synthetic,
)
from private_bo.federated.server import Refusal, Transport
from private_bo.federated.settings import Reliance
from private_bo.federated.streams import Streams
from private_bo.federated.subject import SamplingScheme, Sensitivity
from private_bo.federated.transports import InProcess, Recorded, Selected
from private_bo.federated.weights import Weights

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
