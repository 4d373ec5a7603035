"""The server's side: Algorithm 1 as a Flower ServerApp, with the ledger in its own folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit import files
from dpaudit.certificate import Finding, Severity, SubjectRecord, certify
from dpaudit.ledger import Ledger
from private_bo.federated import DPFTSDE, Broadcast, Transport
from private_bo.federated.flower.setup import ServerFiles, record_of, save_array
from private_bo.federated.flower.transport import FlowerTransport, Grid
from private_bo.gp.types import Array
from private_bo.threads import single_threaded

__all__ = ["Recorded", "serve"]

_NAME = "private_bo.federated:DPFTSDE"
_SEEDED = Finding(
    "seeded-noise",
    Severity.WARNING,
    "The noise of this run came from a stated seed; whoever has it can undo the noise.",
    "Seed experiments only.",
)
_START = 60.0  # seconds that agents may take to connect; who comes later joins later


class Recorded:
    """A transport that keeps what the server sends: all of it is public.

    Args:
        transport: that brings it.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._sent: list[Array] = []

    def exchange(self, broadcast: Broadcast) -> Any:
        """Pass it on, and bring back what is answered."""
        self._sent.append(broadcast.vectors)
        return self._transport.exchange(broadcast)

    def finish(self, broadcast: Broadcast) -> None:
        """Pass on the last one."""
        self._sent.append(broadcast.vectors)
        self._transport.finish(broadcast)

    @property
    def releases(self) -> Array:
        """The releases that agents were shown, (T, P, M), without the zeros before the first."""
        return np.stack(self._sent[1:])


def serve(grid: Grid, context: Any) -> None:
    """Run every round, as a ServerApp's main function.

    Args:
        grid: Flower's way to the agents.
        context: a ``flwr.app.Context`` whose run configuration names the server's folder.
    """
    folder = ServerFiles(Path(context.run_config["folder"]))
    with _told(folder.error), single_threaded():
        setup = folder.read()
        algorithm = setup.algorithm
        _certify(algorithm, setup.seed, folder.certificate)
        transport = FlowerTransport(grid, setup.patience)
        transport.await_nodes(algorithm.agents, _START)
        recorded = Recorded(transport)
        with Ledger(algorithm.plan(), rng=setup.noise, journal=folder.journal) as ledger:
            server = algorithm.server(ledger, setup.samples)
            algorithm.play(server, recorded)
        save_array(folder.broadcasts, recorded.releases)
        counts = {"missing": server.missing, "refused": server.refused, "releases": len(ledger)}
        files.write(folder.counts, files.pretty_json(counts))


def _certify(algorithm: DPFTSDE, seed: int, path: Path) -> None:
    """What the plan proves, written before any data are seen."""
    proved = certify(
        algorithm.plan(),
        subject=SubjectRecord(_NAME, configuration=record_of(algorithm)),
        claim=algorithm.claim(),
        findings=(*algorithm.findings(), _SEEDED),
        not_covered=algorithm.not_covered(),
    )
    replace(proved, seed=seed).save(path)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Flower hides what a ServerApp prints: leave the error in a file."""
    try:
        yield
    except BaseException as error:
        files.write(path, f"{type(error).__name__}: {error}\n")
        raise
