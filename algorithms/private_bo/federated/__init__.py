"""Federated Thompson sampling with distributed exploration (Dai, Low & Jaillet 2021)."""

from private_bo.federated.agent import AgentModel, Agents
from private_bo.federated.comparators import FTS, FTSDE, PlainTS
from private_bo.federated.dp_fts_de import DPFTS, DPFTSDE
from private_bo.federated.messages import Broadcast, Report
from private_bo.federated.problems import FederatedProblem, digits, landmines, synthetic
from private_bo.federated.server import Refusal, Server, Transport
from private_bo.federated.setup import InProcess, Reliance, Selected, WithoutAgent
from private_bo.federated.streams import Streams
from private_bo.federated.subject import SamplingScheme, Sensitivity
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
