"""The server's side: Algorithm 1 as a Flower ServerApp, with the ledger in its own folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from dpaudit.base import files
from dpaudit.certificate import Finding, Severity, SubjectRecord, certify
from dpaudit.ledger import Ledger
from private_bo.federated import Recorded
from private_bo.federated.flower.parties import (
    CERTIFICATE,
    ERROR,
    JOURNAL,
    RESULT,
    ServerSetup,
    setup_in,
)
from private_bo.federated.flower.transport import FlowerTransport, Grid
from private_bo.threads import single_threaded

_NAME = "private_bo.federated:DPFTSDE"
_SEEDED = Finding(
    "seeded-noise",
    Severity.WARNING,
    "The noise of this run came from a stated seed; whoever has it can undo the noise.",
    "Seed experiments only.",
)
_START = 60.0  # seconds that agents may take to connect; who comes later joins later


def serve(grid: Grid, context: Any) -> None:
    """Run every round, as a ServerApp's main function.

    Args:
        grid: Flower's way to the agents.
        context: a ``flwr.app.Context`` whose run configuration names the server's folder.
    """
    folder = Path(context.run_config["folder"])
    try:
        with single_threaded():
            _serve(grid, folder)
    except BaseException as error:  # Flower hides what a ServerApp prints
        files.write(folder / ERROR, f"{type(error).__name__}: {error}\n")
        raise


def _serve(grid: Grid, folder: Path) -> None:
    setup: ServerSetup = setup_in(folder)
    algorithm = setup.algorithm
    proved = certify(  # written before any data are seen
        algorithm.plan(),
        subject=SubjectRecord(_NAME, configuration=algorithm.to_dict()),
        claim=algorithm.claim(),
        findings=(*algorithm.findings(), _SEEDED),
        not_covered=algorithm.not_covered(),
    )
    replace(proved, seed=setup.seed).save(folder / CERTIFICATE)
    transport = FlowerTransport(grid, setup.patience)
    transport.await_nodes(algorithm.agents, _START)
    recorded = Recorded(transport)
    with Ledger(algorithm.plan(), rng=setup.noise, journal=folder / JOURNAL) as ledger:
        server = algorithm.server(ledger)
        algorithm.play(server, recorded)
    result = {
        "broadcasts": recorded.releases.tolist(),
        "missing": server.missing,
        "refused": server.refused,
    }
    files.write(folder / RESULT, files.pretty_json(result))
